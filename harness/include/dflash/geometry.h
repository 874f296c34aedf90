/* The geometry of a DFlash 2 drafter: every size that its arithmetic depends on.
 *
 * Plain data, copyable by assignment. A geometry that reaches a backend has been
 * validated by the harness (dflash_geometry_check in model/geometry.h): sizes are
 * positive, divisions are exact, products fit in 63 bits.
 */
#ifndef DFLASH_GEOMETRY_H
#define DFLASH_GEOMETRY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Entries that a list of a geometry can hold; a longer one is refused by name. */
#define DFLASH_LIST_MAX 256

typedef struct DflashList {
  int64_t count;
  int64_t at[DFLASH_LIST_MAX];
} DflashList;

typedef struct DflashGeometry {
  int64_t hidden;        /* width of the residual stream */
  int64_t intermediate;  /* width of the gated MLP */
  int64_t layers;        /* draft layers */
  int64_t heads;         /* query heads */
  int64_t kv_heads;      /* key and value heads; divides heads */
  int64_t head_dim;      /* even */
  int64_t vocab;         /* tokens; rows of the target's head and of both codebooks */
  int64_t block;         /* rows of a full block: the anchor and block - 1 drafts; >= 2 */
  int64_t mask_token;    /* token id of the rows after the anchor; < vocab, may be 0 */
  int64_t conv_group;    /* channels that share one dynamic coefficient; divides hidden */
  int64_t conv_kernel;   /* taps of the causal convolution over rows */
  int64_t selector_rank; /* width of the candidate selector */
  int64_t selector_top;  /* candidates a row; <= vocab */
  int64_t target_layers; /* layers of the target */
  int64_t window;        /* positions that a row sees back; 0 is all */
  double rope_theta;     /* finite, > 0 */
  double eps;            /* finite, > 0 */
  DflashList taps;       /* 0-based target layers whose outputs a context row joins, in order */
  DflashList windows;    /* window per layer, or empty: `window` everywhere */
  DflashList no_rope;    /* layers without rotation */
} DflashGeometry;

/* Query heads that share one key/value head: query head a reads kv head a / rep. */
static inline int64_t dflash_geometry_rep(const DflashGeometry *g) { return g->heads / g->kv_heads; }

/* Channel groups of the convolution. */
static inline int64_t dflash_geometry_groups(const DflashGeometry *g) { return g->hidden / g->conv_group; }

/* Width of a context row as the target hands it over. */
static inline int64_t dflash_geometry_tap_width(const DflashGeometry *g) { return g->taps.count * g->hidden; }

/* Width of a row of attn.kernel and mlp.kernel. */
static inline int64_t dflash_geometry_kernel_width(const DflashGeometry *g) {
  return 2 * g->conv_kernel * dflash_geometry_groups(g);
}

/* Positions that a row of `layer` sees back, its own included; 0 is all. */
static inline int64_t dflash_geometry_window(const DflashGeometry *g, int64_t layer) {
  return g->windows.count > 0 ? g->windows.at[layer] : g->window;
}

/* 1 when `layer` rotates its queries and keys by position, else 0. */
static inline int dflash_geometry_rotary(const DflashGeometry *g, int64_t layer) {
  for (int64_t i = 0; i < g->no_rope.count; i++)
    if (g->no_rope.at[i] == layer) return 0;
  return 1;
}

#ifdef __cplusplus
}
#endif
#endif
