/* What the fast kernel and that which packs its weights take. */
#ifndef DFLASH_CUDA_FAST_ARGUMENTS_H
#define DFLASH_CUDA_FAST_ARGUMENTS_H

#include "../arguments.h"
#include "layout.h"

/* Pointers to the device, device addresses to the host. */
#ifdef __CUDACC__
typedef const float *FastInput;
typedef float *FastOutput;
#define FAST_POINTER(type) type *
#else
typedef CudaAddress FastInput, FastOutput;
#define FAST_POINTER(type) CudaAddress
#endif

typedef struct FastLayer {
  FastInput q_norm, k_norm, base_a, base_m; /* bases of attention and mlp: [2][2][hidden] */
  int32_t rope, reserved;
} FastLayer;

/* A block. Values are [8 or 16][width]: rows past the call's are zero or come from such. _out: 0, or where a stage's
 * value goes, the call's rows of it. */
typedef struct FastBlock {
  FastLayer layer[FAST_MOST_LAYERS];
  int32_t layers, rows, n_draft;
  int32_t head_rows; /* those of the stream; 0: the head is left to others */
  FAST_POINTER(const unsigned char) stream;
  FAST_POINTER(const unsigned long long) stream_first; /* [blocks of threads]: bytes from its start */
  FAST_POINTER(const unsigned char) vectors;
  FastInput inv_freq;
  float eps, scale;
  FAST_POINTER(const long long) position;  /* of the anchor */
  FAST_POINTER(const CudaVisible) visible; /* [layer] */
  /* h[0]: the block's embeddings; then the residual stream after each half of a layer */
  FastOutput h[2 * FAST_MOST_LAYERS + 1], qkv[FAST_MOST_LAYERS], mix[FAST_MOST_LAYERS], act[FAST_MOST_LAYERS];
  FastOutput d; /* [halves of the columns][kernel rows][8 or 16] */
  FastOutput part, down, logits, hidden, sums;
  FastOutput norm_out[2 * FAST_MOST_LAYERS + 1], d_out[2 * FAST_MOST_LAYERS], conv_out[2 * FAST_MOST_LAYERS],
      gate_out[FAST_MOST_LAYERS], up_out[FAST_MOST_LAYERS], o_out[FAST_MOST_LAYERS], down_out[FAST_MOST_LAYERS],
      q_out[FAST_MOST_LAYERS], k_out[FAST_MOST_LAYERS];
  FastOutput q_proj_out[FAST_MOST_LAYERS], k_proj_out[FAST_MOST_LAYERS], v_proj_out[FAST_MOST_LAYERS];
  FAST_POINTER(unsigned) barrier;          /* 0 before */
  FAST_POINTER(unsigned long long) stamps; /* 0, or the times: at first, and after each meeting of all */
} FastBlock;

/* Grid: FAST_BLOCKS, FAST_PACK_SHARES: what each block of the kernel's threads reads of one product. */
enum { FAST_PACK_SHARES = 16 };
typedef struct FastPackArgs {
  CudaMatrix matrices[3]; /* q, k, v; gate, up; else one */
  CudaAddress vectors[3]; /* f32, but the second of q8_2f: its column field */
  CudaAddress stream;     /* the model's */
  CudaAddress vectors_to; /* the product's */
  CudaAddress first;      /* uint64 [blocks of threads]: where in the stream the product's part begins */
  int32_t product, head_rows;
} FastPackArgs;

#endif
