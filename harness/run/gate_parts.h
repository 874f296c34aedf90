/* What the parts of the gate share. */
#ifndef DFLASH_RUN_GATE_PARTS_H
#define DFLASH_RUN_GATE_PARTS_H

#include <stdio.h>

#include "base/text.h"
#include "run/gate.h"
#include "run/gate_waivers.h"

enum { DFLASH_GATE_PASSED, DFLASH_GATE_NOTED, DFLASH_GATE_WAIVED, DFLASH_GATE_CANNOT_TELL, DFLASH_GATE_FAILED };
const char *dflash_gate_verdict_name(int verdict); /* "passed", "noted", "waived", "cannot tell", "failed" */

/* One thing that was judged. */
typedef struct DflashFinding {
  const char *kind; /* "run", "parity", "plausibility", "time" */
  int verdict;      /* DFLASH_GATE_* */
  char *name;       /* "bench operations.h5 main: reference on cpu, exact" */
  char *message;    /* one line; "" for what passed without a word */
  int64_t times;    /* processes of a bench that passed alike are one finding */
} DflashFinding;

typedef struct DflashGate {
  const DflashGateOptions *options;
  const char *day;
  char today[16];
  DflashWaivers waivers;
  DflashRuns results, baseline;
  DflashRunsComparison pairs, against; /* both sides among the results; results against the baseline */
  DflashFinding *findings;
  int64_t finding_count, finding_capacity;
  bool failed_memory;
} DflashGate;

/* Takes both texts over and empties them. */
void dflash_gate_find(DflashGate *gate, const char *kind, int verdict, DflashText *name, DflashText *message);
/* Whether something of that kind and name passed before: then it is counted there. */
bool dflash_gate_passed_again(DflashGate *gate, const char *kind, const DflashText *name);

/* gate_parity.c: runs that did not end or ended badly, cases that failed, implausible times. */
void dflash_gate_parity(DflashGate *gate);
/* gate_time.c */
DflashStatus dflash_gate_time(DflashGate *gate, DflashError *error);
/* gate_baseline.c */
DflashStatus dflash_gate_read(DflashGate *gate, DflashError *error);
DflashStatus dflash_gate_accept(const DflashGate *gate, DflashError *error);
/* gate_report.c, gate_write.c */
int dflash_gate_exit(const DflashGate *gate);
/* "the gate fails: 1 of 12 findings; first: ..." */
void dflash_gate_line(const DflashGate *gate, int exit_status, DflashText *out);
/* What the chance of a false alarm and the smallest visible slowdown are. */
void dflash_gate_promise(const DflashGate *gate, DflashText *out);
void dflash_gate_print(FILE *file, const DflashGate *gate, int exit_status);
DflashStatus dflash_gate_write(const DflashGate *gate, int exit_status, DflashError *error);

#endif
