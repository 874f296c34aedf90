/* The storage q4tp taken apart, for kernels and faults that need more than values. */
#ifndef DFLASH_FAULTY_KERNEL_MATRIX_H
#define DFLASH_FAULTY_KERNEL_MATRIX_H

#include "backends/faulty/kernels.h"

enum { FAULT_Q4TP_GROUP = 32, FAULT_Q4TP_RUNGS = 32 };

typedef struct FaultQ4tp {
  const uint8_t *nibbles; /* [rows, groups, 16] */
  const uint8_t *ladders; /* [rows] of f16 lo, f16 step */
  const uint8_t *codes;   /* [rows, code_bytes], 5 bits a group */
  int64_t rows, groups, code_bytes;
} FaultQ4tp;

/* `data` in the shape of a tensor of that storage; data is the tensor's own or a changed copy. */
FaultQ4tp fault_q4tp(const DflashTensor *tensor, const void *data);
void fault_q4tp_ladder(const FaultQ4tp *view, int64_t row, float rungs[FAULT_Q4TP_RUNGS]);
int fault_q4tp_code(const FaultQ4tp *view, int64_t row, int64_t group);
/* nibble - 8 of element `index` of a row */
int fault_q4tp_value(const FaultQ4tp *view, int64_t row, int64_t index);

/* The product of a q4tp matrix in profile I8, kernel_matrix_i8.c. x: [rows of the output, columns]. */
DflashStatus fault_matrix_i8(FaultCall *call, const FaultMatrix *knobs, const DflashTensor *tensor, const float *x);

#endif
