/* Weights in the form in which they are stored.
 *
 * Values are exact products; nothing is rounded but the q4tp ladder:
 *   F32, F16, BF16  row-major, little-endian
 *   Q8_2F   rows x cols: [int8 rows*cols][f16 row scale, rows][f16 column field, cols];
 *           w[o,i] = q * row[o] * col[i]; -128 is legal
 *   Q4TP    cols a multiple of 32, gpr = cols / 32:
 *           [nibbles, rows*gpr*16 bytes][rows x (f16 lo, f16 step)][codes, rows x ceil(gpr*5/8) bytes]
 *           element 2k of a group is byte k's low nibble, 2k+1 its high one; value
 *           (nibble - 8) * scale, nibble 0 included. A group's scale is rung c of its row's
 *           ladder, c the group's 5-bit code; codes stand LSB first, each row starting on a byte.
 *           Ladder: t[0] = f32(exp2(lo)), t[c] = f32(t[c-1] * f32(exp2(step))), exp2 correctly
 *           rounded to f32 (computed in f64, then rounded once).
 * The numbers are those of the CMF format.
 */
#ifndef DFLASH_TENSOR_H
#define DFLASH_TENSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  DFLASH_STORAGE_F32 = 0,
  DFLASH_STORAGE_F16 = 1,
  DFLASH_STORAGE_BF16 = 2,
  DFLASH_STORAGE_Q8_2F = 9,
  DFLASH_STORAGE_Q4TP = 15
};

typedef struct DflashTensor {
  int32_t storage; /* DFLASH_STORAGE_* */
  int32_t rank;    /* 1 to 3 */
  int64_t shape[3];
  uint64_t bytes;   /* of data; checked against storage and shape */
  const void *data; /* at least 4-byte aligned; NULL when absent (a model without a head) */
} DflashTensor;

/* One layer. Vectors and base kernels are F32, a matrix has any storage. */
typedef struct DflashLayerWeights {
  DflashTensor input_layernorm;          /* [hidden] */
  DflashTensor post_attention_layernorm; /* [hidden] */
  DflashTensor q_proj;                   /* [heads * head_dim, hidden] */
  DflashTensor k_proj;                   /* [kv_heads * head_dim, hidden] */
  DflashTensor v_proj;                   /* [kv_heads * head_dim, hidden] */
  DflashTensor o_proj;                   /* [hidden, heads * head_dim] */
  DflashTensor q_norm;                   /* [head_dim] */
  DflashTensor k_norm;                   /* [head_dim] */
  DflashTensor gate_proj;                /* [intermediate, hidden] */
  DflashTensor up_proj;                  /* [intermediate, hidden] */
  DflashTensor down_proj;                /* [hidden, intermediate] */
  DflashTensor attention_conv_base;      /* [2, conv_kernel, hidden] */
  DflashTensor attention_conv_kernel;    /* [2 * conv_kernel * groups, hidden] */
  DflashTensor mlp_conv_base;            /* [2, conv_kernel, hidden] */
  DflashTensor mlp_conv_kernel;          /* [2 * conv_kernel * groups, hidden] */
} DflashLayerWeights;

typedef struct DflashWeights {
  DflashTensor fc;              /* [hidden, tap_width] */
  DflashTensor hidden_norm;     /* [hidden] */
  DflashTensor norm;            /* [hidden] */
  DflashTensor selector_hidden; /* [selector_rank, hidden] */
  DflashTensor predecessor;     /* [vocab, selector_rank], F16, BF16 or F32 */
  DflashTensor successor;       /* [vocab, selector_rank], F16, BF16 or F32 */
  DflashTensor head;            /* [vocab, hidden] */
  const float *inv_freq;        /* [head_dim / 2] */
  const DflashLayerWeights *layers;
} DflashWeights;

#ifdef __cplusplus
}
#endif
#endif
