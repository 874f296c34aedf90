/* Dumps: both sides of values that failed, so that they can be judged again without backend or golden. The schema
 * stands in docs/dump-format.md. Like a golden, a dump from outside is opened in a child process. */
#ifndef DFLASH_LOAD_DUMP_H
#define DFLASH_LOAD_DUMP_H

#include <stdbool.h>

#include "dflash/geometry.h"
#include "dflash/stages.h"
#include "dflash/status.h"

#define DFLASH_DUMP_FORMAT "dflash-dump"
#define DFLASH_DUMP_VERSION 1

/* Attributes of an entry, by kind. */
enum {
  DFLASH_DUMP_GOLDEN, /* the file that it was judged by, as it was named then */
  DFLASH_DUMP_CASE,
  DFLASH_DUMP_MODE,
  DFLASH_DUMP_STAGE, /* a stage, or a check with values: context_state.k, block.logits, ... */
  DFLASH_DUMP_OUTCOME,
  DFLASH_DUMP_NOTE,
  DFLASH_DUMP_BACKEND,
  DFLASH_DUMP_DEVICE,
  DFLASH_DUMP_PROFILE,
  DFLASH_DUMP_REPRODUCE, /* the command that gave it */
  DFLASH_DUMP_TEXTS
};
enum {
  DFLASH_DUMP_LAYER,     /* 0 for what exists once */
  DFLASH_DUMP_POSITION,  /* of row 0 */
  DFLASH_DUMP_DAMAGE,    /* of guard bands: dflash_guarded_damage */
  DFLASH_DUMP_INHERITED, /* 1: fails in the chain, passes on its own inputs */
  DFLASH_DUMP_NUMBERS
};
extern const char *const dflash_dump_texts[DFLASH_DUMP_TEXTS];
extern const char *const dflash_dump_numbers[DFLASH_DUMP_NUMBERS];

typedef struct DflashDumpInput {
  const char *source; /* "attn.norm/0", "taps", "residual", "held_k/0", ... */
  int64_t rows, width;
  const float *data;
} DflashDumpInput;

typedef struct DflashDumpEntry {
  const char *texts[DFLASH_DUMP_TEXTS];
  int64_t numbers[DFLASH_DUMP_NUMBERS];
  double score, lambda;
  const DflashGeometry *geometry;
  int64_t rows, width;
  const float *got, *expected, *sigma; /* [rows, width]; sigma NULL: exact */
  DflashDumpInput inputs[DFLASH_STAGE_INPUTS];
  int input_count;
} DflashDumpEntry;

/* The stage whose terms name an entry's places, or DFLASH_STAGE_NONE when its text names neither stage nor check;
 * *check is the static name of a check, NULL for a stage. */
int32_t dflash_dump_stage(const char *text, const char **check);
/* Numbers, sizes and names against each other and the geometry; DFLASH_INVALID_DATA says what. */
DflashStatus dflash_dump_check(const DflashDumpEntry *entry, DflashError *error);

/* ---- writing: beside the path, renamed by commit ---- */

typedef struct DflashDumpWriter DflashDumpWriter;

DflashStatus dflash_dump_create(const char *path, DflashDumpWriter **writer, DflashError *error);
/* Checked as when it is read. */
DflashStatus dflash_dump_add(DflashDumpWriter *writer, const DflashDumpEntry *entry, DflashError *error);
/* left_out: failing values that a limit kept out. Releases the writer, also on failure. */
DflashStatus dflash_dump_commit(DflashDumpWriter *writer, int64_t left_out, DflashError *error);
void dflash_dump_abort(DflashDumpWriter *writer);

/* ---- reading ---- */

typedef struct DflashDump DflashDump;

/* Whether the file says that it is a dump; an error when it says nothing: damaged, no HDF5 file, not there. */
DflashStatus dflash_dump_recognise(const char *path, bool *is_dump, DflashError *error);
/* Everything is read and checked, the hash of the contents too. */
DflashStatus dflash_dump_open(const char *path, DflashDump **dump, DflashError *error);
void dflash_dump_close(DflashDump *dump);
int64_t dflash_dump_count(const DflashDump *dump);
int64_t dflash_dump_left_out(const DflashDump *dump);
const DflashDumpEntry *dflash_dump_at(const DflashDump *dump, int64_t index);

/* Internal: feeds the hash of contents with one entry. */
struct DflashSha256;
void dflash_dump_hash(struct DflashSha256 *hash, const DflashDumpEntry *entry);

#endif
