/* One golden file open on one backend: what a child process holds while it verifies or times. */
#ifndef DFLASH_RUN_SESSION_H
#define DFLASH_RUN_SESSION_H

#include "base/memory.h"
#include "base/pool.h"
#include "load/golden.h"
#include "run/isolate.h"
#include "run/loader.h"
#include "run/options.h"
#include "store/store.h"

typedef struct DflashSession {
  const DflashRunOptions *options;
  const char *file, *settings;  /* settings: dflash_run_settings; own_settings once backend and golden are known */
  const DflashStore *store;     /* for --resume */
  struct DflashDumpSpool *dump; /* NULL: no --dump */
  DflashChild *child;
  DflashGolden *golden;           /* NULL: the cases are in memory */
  const DflashCase *const *cases; /* those; the caller's */
  const DflashGeometry *geometry;
  const DflashWeights *weights;
  DflashLoaded loaded;
  const DflashBackend *backend;
  DflashDevice device;
  DflashModel *model;
  DflashModelInfo info;
  DflashPool *pool;
  DflashOption backend_options[DFLASH_OPTIONS_MAX + 1]; /* the user's, and threads=N where the backend has it */
  uint32_t backend_option_count;
  char threads_text[16];
  char *own_settings; /* settings, and what tells this build of the backend and these golden values from others */
  double open_s;
} DflashSession;

/* What is being done, so that a failure and a crash say whose fault they are: the golden's while the file and a case
 * are read, else the backend's. */
enum {
  DFLASH_PHASE_GOLDEN,
  DFLASH_PHASE_BACKEND,
  DFLASH_PHASE_MODEL,
  DFLASH_PHASE_READ,
  DFLASH_PHASE_CASE,
  DFLASH_PHASE_CLOSE,
  DFLASH_PHASE_COUNT
};
const char *dflash_phase_name(int phase);

/* Tell the parent which phase begins; index: the case's place in the selection; modes: as records write them. */
void dflash_session_phase(DflashSession *session, int phase);
void dflash_session_read(DflashSession *session, int64_t index);
void dflash_session_case(DflashSession *session, const char *modes);
/* Tell the parent what a case is at, which restarts the time limit: a stage, a check that is no stage, other work. */
void dflash_session_stage(DflashSession *session, int mode, int32_t stage, int64_t layer);
void dflash_session_check(DflashSession *session, int mode, const char *check);
void dflash_session_progress(DflashSession *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 1, and the parent is told, when an earlier run holds this case's record (--resume). */
int dflash_session_resumed(DflashSession *session, const char *case_name, const char *modes);
/* Tells the parent why a phase failed: a record {"type":"refused","phase","status","message"}. */
void dflash_session_refuse(DflashSession *session, int phase, const DflashError *error);

DflashStatus dflash_session_golden(DflashSession *session, DflashError *error);
/* A root attribute of the golden; "" when it has none, or when there is no file. */
const char *dflash_session_attribute(const DflashSession *session, const char *name);
DflashStatus dflash_session_hashes(DflashSession *session, DflashError *error);  /* those that the file stores */
DflashStatus dflash_session_backend(DflashSession *session, DflashError *error); /* loaded, device, supports */
DflashStatus dflash_session_model(DflashSession *session, DflashError *error);   /* sends the `model` record */
void dflash_session_close(DflashSession *session);

/* Adds file, backend, device, profile, inputs_hash to a record and sends it; the record is released. */
struct cJSON;
DflashStatus dflash_session_send(DflashSession *session, struct cJSON *record);
void dflash_session_identify(const DflashSession *session, struct cJSON *record);

#endif
