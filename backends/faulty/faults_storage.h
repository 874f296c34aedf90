/* Stored weights decoded wrongly, before the base is opened with them. */
#ifndef DFLASH_FAULTY_FAULTS_STORAGE_H
#define DFLASH_FAULTY_FAULTS_STORAGE_H

#include "backends/faulty/kernel_matrix.h"

/* Members that are NULL or 0 are right. */
typedef struct FaultQ4tpReader {
  int (*value)(const FaultQ4tp *view, int64_t row, int64_t index); /* nibble - 8 */
  int (*code)(const FaultQ4tp *view, int64_t row, int64_t group);
  void (*ladder)(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]);
  bool ladder_swapped; /* lo and step change places */
  bool flush_step;     /* a subnormal step counts as 0 */
} FaultQ4tpReader;

/* Parts of a q8_2f tensor. */
typedef struct FaultQ8 {
  const int8_t *codes; /* [rows, cols] */
  const uint8_t *row_scales, *columns;
  int64_t rows, cols;
} FaultQ8;

typedef struct FaultDecode {
  const char *names; /* patterns of the tensors that are decoded so; NULL: all matrices */
  int32_t storage;   /* DFLASH_STORAGE_*: only tensors of it */
  const FaultQ4tpReader *q4tp;
  float (*q8)(const FaultQ8 *view, int64_t row, int64_t col);
  float (*u16)(uint16_t bits); /* of F16 and BF16 */
  float (*value)(float value); /* of any storage, what becomes of the right value */
} FaultDecode;

/* The hook `weight` of a fault whose knobs are a FaultDecode. */
DflashStatus fault_decode_weight(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                 DflashTensor *tensor, DflashError *error);

/* faults_storage_q4tp.c */
int fault_q4tp_value_swapped(const FaultQ4tp *view, int64_t row, int64_t index);
int fault_q4tp_value_less_7(const FaultQ4tp *view, int64_t row, int64_t index);
int fault_q4tp_value_less_0(const FaultQ4tp *view, int64_t row, int64_t index);
int fault_q4tp_value_signed(const FaultQ4tp *view, int64_t row, int64_t index);
int fault_q4tp_value_symmetric(const FaultQ4tp *view, int64_t row, int64_t index);
int fault_q4tp_value_halves(const FaultQ4tp *view, int64_t row, int64_t index);
int fault_q4tp_value_borrow(const FaultQ4tp *view, int64_t row, int64_t index);
int fault_q4tp_code_first_bits(const FaultQ4tp *view, int64_t row, int64_t group);
int fault_q4tp_code_msb(const FaultQ4tp *view, int64_t row, int64_t group);
int fault_q4tp_code_unaligned(const FaultQ4tp *view, int64_t row, int64_t group);
int fault_q4tp_code_next(const FaultQ4tp *view, int64_t row, int64_t group);
int fault_q4tp_code_pair(const FaultQ4tp *view, int64_t row, int64_t group);
void fault_q4tp_ladder_single(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]);
void fault_q4tp_ladder_direct(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]);
void fault_q4tp_ladder_f16(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]);
void fault_q4tp_ladder_from_one(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]);

/* faults_storage_q8.c */
float fault_q8_scales_swapped(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_unsigned(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_least_clamped(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_scale_bf16(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_scale_flushed(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_row_alone(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_column_of_output(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_next_row_scale(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_read_as_int4(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_product_bf16(const FaultQ8 *view, int64_t row, int64_t col);
float fault_q8_product_f16(const FaultQ8 *view, int64_t row, int64_t col);
float fault_u16_other_codec_f16(uint16_t bits);  /* f16 bits read as bf16 */
float fault_u16_other_codec_bf16(uint16_t bits); /* bf16 bits read as f16 */
float fault_u16_flushed(uint16_t bits);          /* f16, subnormals are zero */
float fault_value_cut_to_bf16(float value);      /* the lower half of its bits lost */

#endif
