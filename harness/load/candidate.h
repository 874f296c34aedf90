/* Values that another engine wrote, in the layout of a golden's cases: any subset of cases, stages, layers and rows, in
 * f32, f16 or bf16. The schema stands in docs/compare.md. Like a golden, such a file is opened in a child process. */
#ifndef DFLASH_LOAD_CANDIDATE_H
#define DFLASH_LOAD_CANDIDATE_H

#include "model/stage_table.h"

#include "dflash/status.h"

#define DFLASH_CANDIDATE_FORMAT "dflash-candidate"

enum { DFLASH_KEPT_F32, DFLASH_KEPT_F16, DFLASH_KEPT_BF16 };

typedef struct DflashCandidateValue {
  float *data;   /* [count, width], widened; owned; NULL: not in the file */
  int64_t *rows; /* [count], which rows of the value, each once; owned; NULL: all, in order */
  int64_t count;
  int storage; /* DFLASH_KEPT_* */
} DflashCandidateValue;

typedef struct DflashCandidateCase {
  int64_t layers;
  DflashCandidateValue *stages;          /* [DFLASH_STAGE_COUNT * layers] */
  DflashCandidateValue *held_k, *held_v; /* [layers], of context_state */
  int32_t *chosen, *plain, *candidates;  /* as in a golden's output; NULL: not in the file */
  float *scores;
} DflashCandidateCase;

typedef struct DflashCandidate DflashCandidate;

/* The root and the names of cases. */
DflashStatus dflash_candidate_open(const char *path, DflashCandidate **candidate, DflashError *error);
void dflash_candidate_close(DflashCandidate *candidate);
/* Text attributes of the root: engine, profile, inputs_hash; "" when absent. */
const char *dflash_candidate_text(const DflashCandidate *candidate, const char *name);
int64_t dflash_candidate_case_count(const DflashCandidate *candidate);
const char *dflash_candidate_case_name(const DflashCandidate *candidate, int64_t index); /* in name order */

/* Everything that the file holds of a case, by the golden's geometry and the case's sizes. A stage's name that does
 * not exist, a layer past the last, another shape or type are DFLASH_INVALID_DATA. */
DflashStatus dflash_candidate_case(const DflashCandidate *candidate, int64_t index, const DflashGeometry *geometry,
                                   const DflashRunSizes *sizes, DflashCandidateCase *c, DflashError *error);
void dflash_candidate_case_close(DflashCandidateCase *c);

/* ---- checks of what a file claims, without HDF5 ---- */

/* What a shape may be: [count, width], or with its axis of heads; count is all rows unless `rows` says which. */
typedef struct DflashCandidateShape {
  int64_t rows, width, heads; /* heads 0: the value has none */
} DflashCandidateShape;

/* Shape of what a file has against what a value is: the number of its rows, or -1. */
int64_t dflash_candidate_rows(const DflashCandidateShape *wanted, int rank, const uint64_t *shape);
/* Rows must be below `all`, each once; NULL when they are, else what is wrong. */
const char *dflash_candidate_rows_fault(const int64_t *rows, int64_t count, int64_t all);

#endif
