/* The inner loops, compiled once per instruction set.
 *
 * A matrix [rows, columns] is held in panels: 16 matrix rows side by side, column after column, so that one
 * vector holds one column of 16 outputs and a panel streams from memory in order. The activations of a group of
 * up to `group` rows are packed as [column][row], so that each value is broadcast once.
 *
 * Order of every sum: columns in order within a block of BLOCK_COLUMNS (a group of Q4_GROUP for q4), blocks added in
 * order. It depends neither on how many rows run together nor on threads: results are equal bit for bit.
 */
#ifndef DFLASH_BLAS_KERNEL_H
#define DFLASH_BLAS_KERNEL_H

#include <stdint.h>

enum { PANEL = 16, BLOCK_COLUMNS = 512, Q4_GROUP = 32, GROUP_MAX = 8, TILE_PANELS_MAX = 2 };

/* How a panel holds a column of 16 weights. */
enum {
  FORM_F32,     /* 16 f32 */
  FORM_F16,     /* 16 f16 */
  FORM_BF16,    /* 16 bf16 */
  FORM_Q8,      /* 16 int8; the column field is folded into x, the row scale is applied to the sums */
  FORM_Q4,      /* 8 columns are 16 words of 8 nibbles, the first column lowest; scales [columns / 32][16] beside */
  FORM_Q4_OPEN, /* FORM_Q4 with its nibbles opened to 16 f32 of -8 .. 7 */
  FORM_COUNT
};

/* Part of a product: `panels` panels by one group of rows over at most BLOCK_COLUMNS columns. */
typedef struct DflashTile {
  const void *weights;   /* at the first column */
  int64_t panel_stride;  /* bytes from a panel to the next */
  int64_t column_stride; /* FORM_F32 and FORM_Q4_OPEN: floats from a column to the next */
  const float *scales;   /* FORM_Q4*: at the first column */
  int64_t scale_stride;  /* floats from a panel's scales to the next one's */
  const float *x;        /* [columns][rows] */
  int64_t columns;
  float *sums; /* [panels][rows][16], added to */
} DflashTile;

typedef void (*DflashTileFn)(const DflashTile *tile);

/* Attention weights of a group of query rows. Lanes are keys: [0, context) of the context, then [own, lanes). */
typedef struct DflashSoftmax {
  float *scores; /* in: scores [panels][rows][16]; out: exp(score - the row's largest), [panels * 16][rows] */
  int64_t panels;
  int rows;
  const int64_t *begin; /* [rows]: lanes before it are hidden from the row */
  int64_t context, own, lanes;
  float scale;
  double *totals; /* [rows] */
} DflashSoftmax;

typedef struct DflashKernel {
  const char *name;
  int group;              /* rows of a group */
  int open_groups;        /* groups of rows from which a stored block is opened to f32 once for all of them */
  int panels[FORM_COUNT]; /* panels of a tile */
  DflashTileFn tile[FORM_COUNT][GROUP_MAX];
  void (*open[FORM_COUNT])(const void *weights, int64_t columns, float *out); /* to [columns][16]; NULL: is f32 */
  void (*silu)(const float *gate, const float *up, float *out, int64_t count);
  void (*softmax)(const DflashSoftmax *softmax);
  uint64_t (*read)(const void *data, int64_t bytes); /* exclusive or of all words; bytes a multiple of 512 */
} DflashKernel;

/* The kernel called `name`, or for "auto" the widest that this processor runs. NULL: not known, or not runnable. */
const DflashKernel *dflash_kernel_find(const char *name);

const DflashKernel *dflash_kernel_plain(void);
const DflashKernel *dflash_kernel_avx2(void);   /* NULL where the compiler does not target it */
const DflashKernel *dflash_kernel_avx512(void); /* NULL where the compiler does not target it */

#endif
