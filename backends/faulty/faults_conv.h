/* Hooks of the faults of convolutions, their kernels and the residual stream. */
#ifndef DFLASH_FAULTY_FAULTS_CONV_H
#define DFLASH_FAULTY_FAULTS_CONV_H

#include "backends/faulty/faults_common.h"

/* faults_conv_taps.c: coefficients and sources for FaultConv */
float fault_conv_base_reversed(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                               int64_t channel);
float fault_conv_base_by_channel(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                                 int64_t channel);
float fault_conv_base_before(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                             int64_t channel);
float fault_conv_base_after(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                            int64_t channel);
float fault_conv_base_none(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                           int64_t channel);
float fault_conv_base_bf16(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                           int64_t channel);

float fault_conv_dynamic_reversed(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                  int64_t channel);
float fault_conv_dynamic_before(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                int64_t channel);
float fault_conv_dynamic_after(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                               int64_t channel);
float fault_conv_dynamic_none(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                              int64_t channel);
float fault_conv_dynamic_transposed(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                    int64_t channel);
float fault_conv_dynamic_dense(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                               int64_t channel);
float fault_conv_dynamic_modulo(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                int64_t channel);
float fault_conv_dynamic_groups_of_16(const FaultCall *call, const float *dynamic, int64_t row, int64_t side,
                                      int64_t tap, int64_t channel);
float fault_conv_dynamic_of_source(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                   int64_t channel);
float fault_conv_dynamic_of_anchor(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                   int64_t channel);

const float *fault_conv_source_shifted(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                       int64_t channel);
const float *fault_conv_source_ahead(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel);
const float *fault_conv_source_channel(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                       int64_t channel);
const float *fault_conv_source_clamped(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                       int64_t channel);
const float *fault_conv_source_short(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel);
const float *fault_conv_source_circular(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                        int64_t channel);
const float *fault_conv_source_tile(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel);
const float *fault_conv_source_stale(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel);
const float *fault_conv_source_sequence(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                        int64_t channel);

/* faults_conv_residual.c */
float fault_conv_residual_f16(const FaultCall *call, const float *h, int64_t row, int64_t channel);
float fault_conv_residual_bf16(const FaultCall *call, const float *h, int64_t row, int64_t channel);
float fault_conv_residual_in_place(const FaultCall *call, const float *h, int64_t row, int64_t channel);
/* In place of a stage, whole. */
DflashStatus fault_conv_stage(FaultCall *call);           /* knobs: FaultConvKnobs */
DflashStatus fault_conv_skipped(FaultCall *call);         /* both convolutions of FaultConvKnobs' stages */
DflashStatus fault_conv_last_row(FaultCall *call);        /* the last row of a cut block is not convolved */
DflashStatus fault_conv_base_first(FaultCall *call);      /* base kernel of layer 0 */
DflashStatus fault_conv_base_swapped(FaultCall *call);    /* base kernels of attention and mlp exchanged */
DflashStatus fault_conv_again(FaultCall *call);           /* the output side's kernel is made from attn.conv_in */
DflashStatus fault_conv_kernel_of_attn(FaultCall *call);  /* mlp.out by attn.kernel */
DflashStatus fault_conv_kernel_of_layer(FaultCall *call); /* attn.out by the kernel of the layer before */
DflashStatus fault_conv_residual_conv(FaultCall *call);   /* the residual is attn.conv_in */
DflashStatus fault_conv_residual_norm(FaultCall *call);   /* the residual is attn.norm */
DflashStatus fault_conv_residual_layer(FaultCall *call);  /* mlp.out's residual is what entered the layer */
DflashStatus fault_conv_out_f16(FaultCall *call);         /* the stream is rounded to f16 */
DflashStatus fault_conv_out_clamped(FaultCall *call);     /* the stream is clamped to the range of f16 */
/* faults_conv_kernel.c: attn.kernel and mlp.kernel */
DflashStatus fault_kernel_row_fastest(FaultCall *call);
DflashStatus fault_kernel_tap_side(FaultCall *call);
DflashStatus fault_kernel_zero(FaultCall *call);
DflashStatus fault_kernel_unnormed(FaultCall *call);
DflashStatus fault_kernel_first_row(FaultCall *call);
DflashStatus fault_kernel_first_layer(FaultCall *call);

typedef struct FaultConvKnobs {
  uint32_t stages; /* FAULT_AT() */
  FaultConv conv;
} FaultConvKnobs;

#endif
