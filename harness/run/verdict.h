/* The verdicts of one case, and their form as records. */
#ifndef DFLASH_RUN_VERDICT_H
#define DFLASH_RUN_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "compare/compare.h"
#include "run/options.h"

struct cJSON;

typedef struct DflashVerdict {
  int mode;          /* DFLASH_MODE_* */
  int32_t stage;     /* DFLASH_STAGE_NONE for a check that is no stage */
  int64_t layer;     /* -1: the check exists once */
  const char *check; /* static name of such a check: "tokens", "repeat", "context_state.k" */
  int outcome;       /* DFLASH_OUTCOME_* */
  bool compared;     /* comparison holds something */
  bool inherited;    /* fails in the chain, passes alone or locally */
  DflashComparison comparison;
  int32_t covered_by;
  int64_t runs, failed_runs;
  char note[400];
} DflashVerdict;

typedef struct DflashVerdicts {
  DflashVerdict *at;
  int64_t count, capacity;
  bool failed; /* memory was out */
} DflashVerdicts;

/* A new verdict with outcome NOT_RUN; a scratch one when memory is out (failed is set). */
DflashVerdict *dflash_verdict_add(DflashVerdicts *list, int mode, int32_t stage, int64_t layer, const char *check);
void dflash_verdict_note(DflashVerdict *verdict, int outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dflash_verdicts_close(DflashVerdicts *list);

/* "attn.mix/2", "tokens", "context_state.k/0". */
const char *dflash_verdict_label(const DflashVerdict *verdict, char text[64]);

/* Marks chain failures whose stage passed alone or locally as inherited, and names where they come from. */
void dflash_verdicts_inherit(DflashVerdicts *list);
/* The first failure in data-flow order; at the same place alone and local stand before chain. NULL when none. */
const DflashVerdict *dflash_verdicts_first(const DflashVerdicts *list);
/* The worst outcome of all: a failure, else unsupported (a stage that was asked for and did not run; with
 * allow_missing only when nothing passed), else pass, else not trusted; NOT_RUN when nothing ran. */
int dflash_verdicts_outcome(const DflashVerdicts *list, int allow_missing);

/* One line: "attn.mix/2: mismatch at row 3, head 5 ...". */
void dflash_verdict_message(const DflashVerdict *verdict, char *text, size_t size);
/* A `verdict` record; NULL when memory is out. */
struct cJSON *dflash_verdict_record(const DflashVerdict *verdict);
/* A number member that survives infinity and NaN. */
void dflash_record_number(struct cJSON *object, const char *name, double value);

#endif
