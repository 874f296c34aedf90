/* Small drawn models for tests of backends, and the calls that tests make often. Everything asserts. */
#ifndef DFLASH_TESTS_TINY_MODEL_H
#define DFLASH_TESTS_TINY_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "dflash/backend.h"

typedef struct TinyModel {
  DflashGeometry geometry;
  DflashWeights weights;
  DflashLayerWeights *layers;
  float *inv_freq;
} TinyModel;

/* Three layers with windows 0, 4 and 9, the middle one without rotation, 3 taps, sizes that share no factor. */
DflashGeometry tiny_geometry(void);
/* As small as a geometry can usefully be: for tests that push many thousand rows. */
DflashGeometry tiny_geometry_minimal(void);

/* Weights from the seed; matrices take the five storages in turn, q4tp where the columns allow it. */
void tiny_open(TinyModel *tiny, DflashGeometry geometry, unsigned seed);
void tiny_close(TinyModel *tiny);

/* count floats in [-1, 1), the same for the same name; free() releases. */
float *tiny_draw(const char *name, int64_t count);

/* Exact value of a stored weight, worked out element by element. */
double tiny_at(const DflashTensor *tensor, int64_t row, int64_t col);

/* dlopen; the library stays loaded. */
const DflashBackend *tiny_backend(const char *path);

DflashModel *tiny_model_open(const DflashBackend *backend, const TinyModel *tiny, const char *threads);
/* The same in a profile, with one option; key NULL: none. */
DflashModel *tiny_model_open_as(const DflashBackend *backend, const TinyModel *tiny, int32_t profile, const char *key,
                                const char *value);
/* A model of the drawn weights, which are gone when it returns. */
DflashModel *tiny_model(const DflashBackend *backend, DflashGeometry geometry, const char *threads);
DflashModel *tiny_model_as(const DflashBackend *backend, DflashGeometry geometry, int32_t profile, const char *key,
                           const char *value);
DflashSequence *tiny_sequence(const DflashBackend *backend, DflashModel *model, uint32_t flags);

/* A block's answers, all of them. */
typedef struct TinyAnswer {
  int64_t n_draft, head_width, top, rank;
  int32_t *chosen, *plain, *candidates;
  float *scores, *logits, *selector;
} TinyAnswer;

/* Full rows, full head, h drawn by name. */
TinyAnswer tiny_block(const DflashBackend *backend, const DflashGeometry *geometry, DflashSequence *sequence,
                      int64_t anchor_pos, const char *h_name, uint32_t flags);
void tiny_answer_equal(const TinyAnswer *a, const TinyAnswer *b);
bool tiny_answer_same_logits(const TinyAnswer *a, const TinyAnswer *b);
void tiny_answer_close(TinyAnswer *answer);

#endif
