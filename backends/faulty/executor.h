/* What the parts of the executor share. Faults include faulty.h alone. */
#ifndef DFLASH_FAULTY_EXECUTOR_H
#define DFLASH_FAULTY_EXECUTOR_H

#include "backends/faulty/faulty.h"
#include "model/stage_table.h"
#include "model/weights.h"

/* Positions are exact in f64, and sums of two of them stay far from overflow. */
#define FAULT_POSITION_MAX (INT64_C(1) << 53)

enum { FAULT_SLOTS = 8 };

typedef struct FaultScratch {
  struct {
    float *data;
    int64_t count;
  } slots[FAULT_SLOTS];
} FaultScratch;

/* options.c */
const Fault *fault_at(size_t index); /* of all lists joined; NULL past the last */

typedef struct FaultOptions {
  const char *base; /* name */
  const Fault *fault;
  bool expose_end;
  int32_t slow_stage;
  double slow_by;
  DflashOption *passed; /* to the base; owned */
  uint32_t passed_count;
} FaultOptions;
/* DFLASH_INVALID_ARGUMENT on an unknown defect or a bad value. Close with free(options->passed), also on failure. */
DflashStatus fault_options_parse(const DflashModelDesc *desc, FaultOptions *options, DflashError *error);

/* base.c: the base's table, from the folder that this backend lies in. It stays loaded. */
DflashStatus fault_base_load(const char *name, const DflashBackend **base, DflashError *error);
/* The first base, for what is asked before options are known. */
#define FAULT_BASE_DEFAULT "reference"

/* weights.c: the weights that the base is opened with; tensors that were altered own their data. Close also on failure.
 */
DflashStatus fault_weights_alter(const Fault *fault, const DflashGeometry *geometry, const DflashWeights *given,
                                 DflashWeightSet *altered, DflashError *error);
void fault_weights_close(const DflashGeometry *geometry, const DflashWeights *given, DflashWeightSet *altered);
/* Copies what the model's fault keeps, as it was given. */
DflashStatus fault_weights_keep(DflashModel *model, const DflashWeights *given, DflashError *error);
void fault_weights_drop(DflashModel *model);

/* check.c: texts name the argument, the value found and what is valid. */
typedef struct FaultRange {
  const char *name;
  int64_t value, low, high;
} FaultRange;
DflashStatus fault_check_ranges(const char *call, const FaultRange *ranges, size_t count, DflashError *error);
DflashStatus fault_check_pointer(const char *name, const void *pointer, DflashError *error);
DflashStatus fault_check_struct(const char *name, const void *pointer, size_t needed, DflashError *error);
DflashStatus fault_check_stage(const DflashModel *model, int32_t stage, int64_t layer, DflashError *error);
/* Fills a caller's struct as far as its struct_size reaches; value begins with a struct_size too. */
DflashStatus fault_answer(const char *name, void *answer, const void *value, size_t bytes, DflashError *error);

/* values.c */
/* Room for a run of these sizes: of the context stages (push_rows not 0) or of the block's. Keeps what is there when it
 * suffices. */
DflashStatus fault_values_reserve(FaultValues *values, const DflashGeometry *geometry, const DflashRunSizes *sizes,
                                  DflashError *error);
/* Lays the values of a run out; the room must suffice. */
void fault_values_place(FaultValues *values, const DflashGeometry *geometry, const DflashRunSizes *sizes);

/* stage.c: a stage of a flow: inputs are the values of the stages before it, its output goes beside them. */
typedef struct FaultFlow {
  const FaultValues *values;
  const float *given;           /* taps, or the block's embeddings */
  const float *held_k, *held_v; /* of attn.mix */
} FaultFlow;
DflashStatus fault_flow_run(FaultCall *call, const FaultFlow *flow);
bool fault_exposes(const DflashModel *model, int32_t stage);
DflashStatus fault_stage(DflashSequence *sequence, const DflashStageCall *call, DflashError *error);

/* block.c */
uint64_t fault_clock_now(void); /* ns */

/* model.c */
DflashStatus fault_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error);
DflashStatus fault_supports(const DflashModelDesc *desc, DflashError *error);
DflashStatus fault_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error);
void fault_model_close(DflashModel *model);

/* sequence.c */
DflashStatus fault_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                 DflashError *error);
void fault_sequence_close(DflashSequence *sequence);
DflashStatus fault_poison(DflashSequence *sequence, uint32_t pattern, DflashError *error);

#endif
