/* Candidates of every drafted row, and the walk that chooses among them. */
#ifndef DFLASH_BLAS_SELECT_H
#define DFLASH_BLAS_SELECT_H

#include "model.h"

typedef struct DflashCandidate {
  float logit;
  int32_t token;
} DflashCandidate;

typedef struct DflashSelection {
  DflashCandidate *candidates;    /* [rows][top], best first after the search */
  int32_t *chosen;                /* [rows] */
  int *found_nan;                 /* [rows] */
  float *predecessor, *successor; /* [rank] */
} DflashSelection;

bool dflash_selection_open(DflashSelection *selection, const DflashGeometry *geometry);
void dflash_selection_close(DflashSelection *selection);

typedef struct DflashSelectCall {
  const DflashModel *model;
  const float *logits, *hidden; /* [n_draft, head_width], [n_draft, selector_rank] */
  int64_t n_draft, head_width, anchor_token;
  float *scores;        /* [n_draft, selector_top] or NULL */
  DflashTokens *tokens; /* written only on success */
} DflashSelectCall;

DflashStatus dflash_select(const DflashSelection *selection, const DflashSelectCall *call, DflashError *error);

#endif
