/* Push constants of the kernels, read by C and by GLSL. C sees all of them as structs; a shader defines PUSH_NAME of
 * its own, then VULKAN_GLSL is set by its build, and gets one block called `push`. All members are 4 bytes wide. */
#ifdef VULKAN_GLSL
#define WORD uint
#define REAL float
#define PUSH_BEGIN(name) layout(push_constant, std430) uniform name {
#define PUSH_END(name) \
  }                    \
  push;
#else
#include <stdint.h>
#define WORD uint32_t
#define REAL float
#define PUSH_BEGIN(name) typedef struct name {
#define PUSH_END(name) \
  }                    \
  name;
#endif

/* y[y_first + r, out_first + o] = sum_i w[o, i] x[x_first + r, i] for r < rows, o < out_rows */
#if !defined(VULKAN_GLSL) || defined(PUSH_MATRIX)
PUSH_BEGIN(MatrixPush)
WORD rows;
WORD cols;
WORD out_rows;   /* rows of w in this part */
WORD out_first;  /* the part's first row in the whole matrix */
WORD pitch;      /* of a row of w, in pieces of 16 bytes */
WORD code_pitch; /* of a row of q4tp's codes, in words */
WORD x_first;
WORD x_stride; /* in elements (i8: cols) */
WORD y_first;
WORD y_stride;
PUSH_END(MatrixPush)
#endif

/* the same on matrix units, of x prepared from row 0 on (units.comp) */
#if !defined(VULKAN_GLSL) || defined(PUSH_UNITS)
PUSH_BEGIN(UnitsPush)
WORD rows;
WORD out_rows;
WORD out_first;
WORD y_first;
WORD y_stride;
WORD tiles;   /* of 16 rows of w in this part */
WORD pieces;  /* of a tile: a multiple of a step's */
WORD steps;   /* of the columns */
WORD groups;  /* of 32 columns, as many as whole steps have */
WORD x_tiles; /* of 8 rows of x, a multiple of the constant */
WORD splits;
WORD split_steps; /* that a workgroup takes */
WORD found_first; /* this part's first tile among those in `found` */
WORD arrival_first;
WORD split_stride; /* in y, from a split's sums to the next one's; 0: the workgroup that comes last adds them */
/* where they lie, for kernels that read them by address; else 0 */
WORD weights_low;
WORD weights_high;
WORD codes_low;
WORD codes_high;
WORD x_low;
WORD x_high;
WORD factors_low;
WORD factors_high;
PUSH_END(UnitsPush)
#endif

/* x[x_first + r, i] * column[i] for products on matrix units, the column field where has_columns is not 0 */
#if !defined(VULKAN_GLSL) || defined(PUSH_PREPARE)
PUSH_BEGIN(PreparePush)
WORD x_first;
WORD x_stride;
WORD rows;
WORD cols;
WORD has_columns;
WORD groups; /* of 32 columns of a row */
PUSH_END(PreparePush)
#endif

/* int8 activations and their scales, per row x_first + r of x, r < rows, and group of 32 columns */
#if !defined(VULKAN_GLSL) || defined(PUSH_QUANTISE)
PUSH_BEGIN(QuantisePush)
WORD rows;
WORD cols; /* a multiple of 32 */
WORD x_first;
WORD x_stride;
PUSH_END(QuantisePush)
#endif

/* largest[r] = max_i |x[x_first + r, i] * column[i]|, the column field where has_columns is not 0 */
#if !defined(VULKAN_GLSL) || defined(PUSH_LARGEST)
PUSH_BEGIN(LargestPush)
WORD cols;
WORD x_first;
WORD x_stride;
WORD has_columns;
PUSH_END(LargestPush)
#endif

#if !defined(VULKAN_GLSL) || defined(PUSH_NORM)
PUSH_BEGIN(NormPush)
WORD width;
REAL inverse; /* 1 / width */
REAL eps;
PUSH_END(NormPush)
#endif

/* h += conv(x, d, base, 1), then the norm of what follows */
#if !defined(VULKAN_GLSL) || defined(PUSH_OUT)
PUSH_BEGIN(OutPush)
WORD width;
WORD groups;  /* of channels that share a coefficient */
REAL inverse; /* 1 / width */
REAL eps;
WORD row_first; /* out_fragments: the first row that is prepared */
PUSH_END(OutPush)
#endif

/* y = conv(x, d, base, 0) */
#if !defined(VULKAN_GLSL) || defined(PUSH_CONV)
PUSH_BEGIN(ConvPush)
WORD width;
WORD groups;
PUSH_END(ConvPush)
#endif

#if !defined(VULKAN_GLSL) || defined(PUSH_ACT)
PUSH_BEGIN(ActPush)
WORD width;
PUSH_END(ActPush)
#endif

/* the norm of each head and its rotation */
#if !defined(VULKAN_GLSL) || defined(PUSH_HEADS)
PUSH_BEGIN(HeadsPush)
WORD heads;
WORD others; /* heads of the other value; 0: none, and its bindings are of no use */
WORD head_dim;
WORD rotate;  /* 0: the norm alone */
WORD y_first; /* row of both y that row 0 goes to */
REAL inverse; /* 1 / head_dim */
REAL eps;
PUSH_END(HeadsPush)
#endif

#if !defined(VULKAN_GLSL) || defined(PUSH_ROTATION)
PUSH_BEGIN(RotationPush)
WORD half_dim; /* head_dim / 2 */
PUSH_END(RotationPush)
#endif

#if !defined(VULKAN_GLSL) || defined(PUSH_ATTEND)
PUSH_BEGIN(AttendPush)
WORD rows; /* of the block */
WORD heads;
WORD kv_heads;
WORD splits;     /* that share what is seen of this segment */
REAL scale;      /* head_dim^-0.5 */
WORD row_first;  /* of the context, where the bound segment begins */
WORD row_count;  /* of the segment */
WORD part_first; /* where the segment's parts go */
WORD parts;      /* of all segments, and the last one: the block itself */
PUSH_END(AttendPush)
#endif

#if !defined(VULKAN_GLSL) || defined(PUSH_MIX)
PUSH_BEGIN(MixPush)
WORD rows; /* of the block */
WORD heads;
WORD head_dim;
WORD parts; /* of attend, 64 at most */
PUSH_END(MixPush)
#endif

/* the best `top` of each row */
#if !defined(VULKAN_GLSL) || defined(PUSH_TOP)
PUSH_BEGIN(TopPush)
WORD width; /* of a row of logits */
WORD chunk; /* elements that a workgroup looks at: a multiple of 4, 16 times its threads at most */
WORD chunks;
WORD top;
PUSH_END(TopPush)
#endif

/* rows of a codebook part as f32 */
#if !defined(VULKAN_GLSL) || defined(PUSH_GATHER)
PUSH_BEGIN(GatherPush)
WORD rows; /* n_draft */
WORD top;
WORD rank;
WORD storage;     /* DFLASH_STORAGE_F32, _F16 or _BF16 */
WORD token_first; /* of the part */
WORD token_count;
WORD predecessor; /* 1: entry [j, p] is of candidate p of row j - 1, and [0, 0] of the anchor; 0: of candidate p of row
                     j */
PUSH_END(GatherPush)
#endif

#if !defined(VULKAN_GLSL) || defined(PUSH_PAIRS)
PUSH_BEGIN(PairsPush)
WORD rows; /* n_draft */
WORD top;
WORD rank;
WORD tokens; /* rows of a codebook */
PUSH_END(PairsPush)
#endif

/* a streaming read (words of 16 bytes a thread sums), or multiply-adds */
#if !defined(VULKAN_GLSL) || defined(PUSH_MEASURE)
PUSH_BEGIN(MeasurePush)
WORD count;
PUSH_END(MeasurePush)
#endif
