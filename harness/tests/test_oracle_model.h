/* Drawn models and data for tests of the oracle. Everything asserts. */
#ifndef DFLASH_TESTS_ORACLE_MODEL_H
#define DFLASH_TESTS_ORACLE_MODEL_H

#include "model/case.h"
#include "model/weights.h"

/* A geometry with sizes that share no factor, two layers, the second without rotation and with a window of 5. */
DflashGeometry oracle_geometry(void);

typedef struct OracleModel {
  DflashGeometry geometry;
  DflashWeightSet set;
  DflashTensor head;
} OracleModel;

enum { ORACLE_MIXED = -1 }; /* storages in turn */

void oracle_model_open(OracleModel *model, const DflashGeometry *geometry, int32_t storage, uint64_t seed);
void oracle_model_close(OracleModel *model);
/* Puts other values into a matrix, in the storage that it has. */
void oracle_tensor_set(DflashTensor *tensor, int32_t storage, const float *values);

/* Normal deviates of a stream, close to it: sums of 12 uniform numbers. free() releases. */
float *oracle_draw(uint64_t seed, const char *name, int64_t count, double deviation);

/* A case with drawn taps and h, one push of `context` rows at `first`. */
void oracle_case_open(DflashCase *c, const DflashGeometry *geometry, int64_t first, int64_t context, int64_t anchor_pos,
                      uint64_t seed);

#endif
