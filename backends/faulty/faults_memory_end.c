/* The end of a process, or of a call before its time. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/faulty/faults_memory.h"
#include "base/error.h"

static void crash(void) {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

static void hang(void) {
  for (;;) pause();
}

static DflashStatus fail(DflashError *error) {
  return dflash_error_set(error, DFLASH_INTERNAL, "faulty: the kernel could not be started");
}

DflashStatus fault_crash_stage(FaultCall *call) {
  crash();
  return fail(call->error);
}

DflashStatus fault_hang_stage(FaultCall *call) {
  hang();
  return fail(call->error);
}

DflashStatus fault_error_stage(FaultCall *call) { return fail(call->error); }

DflashStatus fault_crash_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)call;
  crash();
  return fail(error);
}

DflashStatus fault_exit_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)call;
  (void)error;
  exit(0);
}

DflashStatus fault_hang_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)call;
  hang();
  return fail(error);
}

DflashStatus fault_error_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)call;
  return fail(error);
}

DflashStatus fault_crash_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                              DflashError *error) {
  crash();
  return fault_push(sequence, pos, taps, rows, error);
}

DflashStatus fault_error_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                              DflashError *error) {
  (void)sequence;
  (void)pos;
  (void)taps;
  (void)rows;
  return fail(error);
}
