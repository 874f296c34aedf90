/* What a user asked a run to do. Filled by the command line; text belongs to the caller. */
#ifndef DFLASH_RUN_OPTIONS_H
#define DFLASH_RUN_OPTIONS_H

#include <stdint.h>

#include "dflash/backend.h"

enum { DFLASH_MODE_ALONE, DFLASH_MODE_CHAIN, DFLASH_MODE_LOCAL, DFLASH_MODE_COUNT };
const char *dflash_mode_name(int mode);
/* Bits (1 << mode) from "alone,chain"; unknown names are DFLASH_INVALID_ARGUMENT and list what exists. */
DflashStatus dflash_modes_parse(const char *text, unsigned *modes, DflashError *error);
/* DFLASH_PROFILE_* from "exact"; likewise. */
DflashStatus dflash_profile_parse(const char *text, int32_t *profile, DflashError *error);
const char *dflash_profile_name(int32_t profile);

#define DFLASH_OPTIONS_MAX 16

typedef struct DflashRunOptions {
  const char *const *files;
  int64_t file_count;
  const char *command; /* the command line as typed, for records */
  const char *backend, *backend_path, *device;
  int32_t profile;
  DflashOption options[DFLASH_OPTIONS_MAX]; /* to the backend */
  uint32_t option_count;
  const char *cases;  /* patterns; NULL: all */
  const char *stages; /* patterns over "attn.mix" and "attn.mix/1"; NULL: all */
  int64_t layer;      /* -1: all */
  unsigned modes;     /* 0: by backend: alone,chain, or chain,local when it runs fused */
  int load_context;   /* 1: context_state is loaded, operations are not replayed */
  int64_t repeat;     /* blocks whose verdicts are counted, >= 1 */
  double timeout_s;   /* silence of one case; 0: none */
  int allow_missing;
  int64_t shard, shards; /* 0-based shard of shards */
  int resume, verbose, quiet;
  int threads; /* of the harness itself (error scales, local recomputation); 0: all CPUs */
  const char *json, *junit, *history;
  const char *dump;   /* verify: file for the values that fail; NULL: none */
  int64_t dump_limit; /* bytes of values at most */
  const char *golden; /* compare: what the files are judged by */
  int require_all;    /* compare: what a file has not fails */
  /* bench */
  double confidence, budget_s;
  int64_t warmup, max_samples;
  int cold;
  int64_t round;                   /* context rows pushed per round; 0: the block alone */
  int no_roofline;                 /* neither the roofline nor the library's calls are measured */
  const char *peers_path;          /* records of the same block in another library, set beside this one; NULL: none */
  const struct DflashPeers *peers; /* as dflash_run_bench read them */
} DflashRunOptions;

/* What else decides what a case's record says, as text: "stage=attn.* layer=0 repeat=3 option:form=f32"; "" for the
 * defaults. free() releases; NULL when memory is out. */
char *dflash_run_settings(const DflashRunOptions *options);
/* The modes as records write them: "alone,chain". */
const char *dflash_modes_text(unsigned modes, char text[32]);

/* Each runs to its end, writes records, and returns an exit status (base/error.h). */
int dflash_run_verify(const DflashRunOptions *options);
int dflash_run_bench(const DflashRunOptions *options);

#endif
