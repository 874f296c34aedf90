/* One golden file open on one backend: what a child process holds while it verifies or times. */
#ifndef DFLASH_RUN_SESSION_H
#define DFLASH_RUN_SESSION_H

#include "base/memory.h"
#include "base/pool.h"
#include "load/golden.h"
#include "run/isolate.h"
#include "run/loader.h"
#include "run/options.h"

typedef struct DflashSession {
  const DflashRunOptions *options;
  const char *file;
  DflashChild *child;
  DflashGolden *golden;
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
  double open_s;
} DflashSession;

/* Steps of opening, so that a failure and a crash say whose fault they are. */
enum { DFLASH_PHASE_GOLDEN, DFLASH_PHASE_BACKEND, DFLASH_PHASE_MODEL, DFLASH_PHASE_CASE, DFLASH_PHASE_COUNT };
const char *dflash_phase_name(int phase);

/* Tells the parent which phase begins. */
void dflash_session_phase(DflashSession *session, int phase);
/* Tells the parent why a phase failed: a record {"type":"refused","phase","status","message"}. */
void dflash_session_refuse(DflashSession *session, int phase, const DflashError *error);

DflashStatus dflash_session_golden(DflashSession *session, DflashError *error);
DflashStatus dflash_session_backend(DflashSession *session, DflashError *error); /* loaded, device, supports */
DflashStatus dflash_session_model(DflashSession *session, DflashError *error);   /* sends the `model` record */
void dflash_session_close(DflashSession *session);

/* Adds file, backend, device, profile, inputs_hash to a record and sends it; the record is released. */
struct cJSON;
DflashStatus dflash_session_send(DflashSession *session, struct cJSON *record);
void dflash_session_identify(const DflashSession *session, struct cJSON *record);

#endif
