/* The kernels: one row of VULKAN_KERNELS each. Buffers are bound in the order of the comments; all are storage buffers
 * of set 0, tightly packed rows unless said. Push constants: shaders/push.h. A binding that a storage has no use for is
 * bound to any range. */
#ifndef DFLASH_VULKAN_KERNEL_H
#define DFLASH_VULKAN_KERNEL_H

#include "device.h"
#include "memory.h"
#include "shaders/push.h"

enum { VULKAN_MAX_BINDINGS = 14, VULKAN_MAX_CONSTANTS = 11, VULKAN_PUSH_BYTES = 128, VULKAN_MAX_PARTS = 64 };

/* X(ID, module, bindings, mask of bindings written, push constants)
 *
 * matrix_*, half_* (profile f16: activations in f16, as values of f32), matrix_i8*:
 *   0 weights uvec4[out_rows][pitch]; 1 scales float: q4tp [out_rows][2] = exp2(lo), exp2(step), q8_2f [out_rows];
 *   2 codes uint[out_rows][code_pitch] of q4tp, 5 bits each, first code in the lowest bits of word 0;
 *   3 columns float[cols] of q8_2f; 4 x float (i8: uint[rows][cols / 4], four int8 a word, first in the lowest byte);
 *   5 y float; 6 half_*: largest float[rows]; i8: scales float[rows][cols / 32]
 *   constants: 0 rows of x a workgroup takes (ROWS: 8 or 16), 1 rows of w a thread takes (1, 2 or 4), 2 rows of x in
 *   shared memory at a time (8; 4: less memory, see product.glsl)
 *   groups: ceil(out_rows / (8 * constant 1)), ceil(rows / ROWS), 1; 128 threads, 16 a row of w
 * quantise: 0 x; 1 words uint[rows][cols / 4]; 2 scales float[rows][cols / 32]; groups ceil(cols / 32 / 4), rows; 128
 * threads largest: 0 x; 1 columns; 2 largest float[rows]; groups rows
 * norm: 0 x; 1 weight; 2 y; groups rows; constants: rows.h, the first 3
 * enter: the same, and 3 h, which becomes x
 * out: 0 h (in place); 1 x; 2 d float[rows][2 * taps * groups]; 3 base float[2][taps][width]; 4 weight; 5 norm; groups
 * rows; constants: rows.h
 * conv: 0 x; 1 d; 2 base; 3 y; groups ceil(width / (threads * columns)), rows; constants: rows.h
 * act: 0 gate; 1 up; 2 y; groups up to ceil(width / (threads * columns)), rows; constants: rows.h, the first 2
 * heads: 0 x [rows][heads][head_dim]; 1 weight; 2 table float[rows][2][half]: cos, sin; 3 y; 4 x [rows][others]
 * [head_dim], 5 weight and 6 y of the other heads; groups heads + others, rows; constant: rows.h; 64 threads
 * rotation: 0 positions float[rows]; 1 inv_freq; 2 table; groups up to ceil(half / 64), rows
 *
 * attend: 0 q [rows][heads][head_dim]; 1 context K [len][kv_heads][head_dim]; 2 context V; 3 own K
 * [rows][kv_heads][head_dim]; 4 own V; 5 visible uint[1 + rows]: end, then each row's begin, as rows of K; none is
 * smaller than the one before, and none exceeds end; 6 sums float[parts][rows * heads][2]: largest score, sum of exp
 * (an empty part: -inf, 0); 7 mixes float[parts][rows * heads][head_dim], not divided by the sum. Constants: 0
 * head_dim; 1 queries a workgroup takes: 8, 16 or 32; 2 queries in shared memory at a time: 1, 2 or 4; 3 threads: 128
 * or 256, 8 a query or more. Groups: kv_heads, parts, tiles = ceil(rows * heads / kv_heads / queries). Query index
 * within a kv head: row * rep + head % rep.
 *
 * Context part s sees K rows [b + s n, b + (s + 1) n) below end, b the smallest begin, n = ceil((end - b) / splits)
 * rounded up to 64, at least 64: as many parts are needed as that makes, and no more than splits. The last part is the
 * block's own. A longer context takes a dispatch for each segment: its rows are bound, begin and end cut to them, its
 * parts go to part_first on; the last one adds the block's own.
 *
 * attend_units: the same on matrix units, for a head_dim of 32, 64 or 128. Constants: 0 head_dim; 1 parts of f16: 1
 * (profile f16) or 2; 2 heads of a kv head. Groups: tiles of 32 queries; 256 threads.
 *
 * mix: 0 sums; 1 mixes; 2 y [rows][heads][head_dim]. Constant 0: threads, 128 or 256. Groups: heads, rows.
 *
 * read: 0 words uvec4[]; 1 sums uint[groups]; push count =
 * uvec4s in all; 256 threads, any number of groups multiply: 0 sums float[groups * 256]; push count = rounds of 64
 * multiply-adds a thread */
/* Choice of tokens. Flags are uint[2 + rows]: 1 where a logit is NaN and 2 where a score on the way is, then counters
 * of workgroups: of pairs, and of top for each row; all are 0 before. Constant 0: threads, 128 or more.
 *
 * top: 0 logits [rows][width]; 1 entries uint[rows][chunks][top][2], of chunks; 2 best uint[rows][top][2]: bits of a
 * logit and its token (-1 past the end of a row); 3 flags; groups chunks, rows. The chunks of a row begin where its
 * first logit's multiple of four does: chunks = ceil((width + 3) / chunk).
 *
 * gather: 0 codebook part (words); 1 best; 2 anchor int[1]; 3 y float[rows][top][rank]; groups rows, top, 1; 64
 * threads. Entries of tokens outside the part are left alone.
 *
 * pairs: 0 P; 1 C, each a codebook or, gathered, float[rows][top][rank]; 2 best; 3 anchor; 4 hp float[rows][rank]; 5
 * pairs float[rows][top][top], scores [j][p][c], then uint[rows][top], the best c; row 0 has p = 0 alone; 6 flags; 7
 * result int: chosen[rows], plain[rows], candidates[rows][top], then floats scores[rows][top], then the flags; groups
 * top, rows (p, j). Constants: 1 what P is, 2 what C is: its storage (F32, F16, BF16), or 3, gathered; 3 whether the
 * rank is a multiple of 8 */
/* Products on matrix units, units.h:
 *
 * prepare: 0 x; 1 columns; 2 pairs uint[64]; 3 words uint[x_tiles][groups][P][32][4]; 4 factors float[x_tiles][groups]
 * [8]. Constants: 0 P, parts of f16: 1 (profiles f16 and i8) or 3; 1 whether x becomes integers. Groups: ceil(groups /
 * 16), 8 * x_tiles; 256 threads
 *
 * enter_fragments, out_fragments, conv_fragments, act_fragments, mix_fragments: the kernel of that name, which also
 * prepares its norm or y. Behind its own bindings: columns; pairs; words; factors; of out also the words, the factors
 * and the columns of another form. Behind its constants: P; whether y becomes integers; whether there is a column
 * field; of out also how many forms there are, and whether the other one has a column field. Rows past the last stay as
 * they are. Groups of mix: along x as many as the prepared columns have heads.
 * conv_, act_ and out_fragments also add splits. Behind all that they bind d, gate and up, or x as a product left it,
 * float[rows][splits][width], and write it where the plain kernel reads it; constants behind the others: how many
 * splits of each. 1: the product itself is bound. heads_sums: as heads, and 7 sums of x; 8 of the other x; 9 of v; 10
 * v; constants 1 to 3 their splits. Groups along x: heads + others, and where v has splits as many more as others.
 *
 * units_*: 0 weights uvec4[tiles][pieces][32]; 1 scales as above; 2 codes uint[tiles][pieces / 4][32] of q4tp; 3 words;
 * 4 factors; 5 y; 6 found vec4[tiles][splits][x_tiles][32], of all parts; 7 arrivals uint, one a workgroup of all
 * splits together, 0 before and after; 8 masks uint[3]; 6 and 7 are of no use where splits are left apart,
 * y[rows][splits][out_rows]. Constants: 0 threads, 32 a subgroup; 1 tiles of 8 rows of x
 * that a workgroup takes; 2 tiles of 16 rows of w that a subgroup takes: 1, 2 or 4; 3 how x comes: VULKAN_X_*; 4 P; 5
 * pieces of a step; 6 whether nibbles are multiplied as they are, which takes P 1; 7 rungs of a ladder, of which one is
 * kept in shared memory; 8 subgroups of a workgroup that share the columns of the same rows, of which splits are 1
 * then. units_*_at: the same, but 0, 2, 3 and 4 are read by their addresses, which stand among the push constants.
 * Groups: ceil(tiles / (subgroups / constant 8 * constant 2)), x_tiles / constant 1, splits
 *
 * units_probe: 0 a uvec4[32]; 1 b uvec2[32]; 2 products float[32][4]; groups 1; push of no use */
#define VULKAN_KERNELS(X)                                                          \
  X(MATRIX_F32, matrix_f32, 6, 1u << 5, MatrixPush)                                \
  X(MATRIX_F16, matrix_f16, 6, 1u << 5, MatrixPush)                                \
  X(MATRIX_BF16, matrix_bf16, 6, 1u << 5, MatrixPush)                              \
  X(MATRIX_Q8, matrix_q8, 6, 1u << 5, MatrixPush)                                  \
  X(MATRIX_Q4, matrix_q4, 6, 1u << 5, MatrixPush)                                  \
  X(HALF_F32, half_f32, 7, 1u << 5, MatrixPush)                                    \
  X(HALF_F16, half_f16, 7, 1u << 5, MatrixPush)                                    \
  X(HALF_BF16, half_bf16, 7, 1u << 5, MatrixPush)                                  \
  X(HALF_Q8, half_q8, 7, 1u << 5, MatrixPush)                                      \
  X(HALF_Q4, half_q4, 7, 1u << 5, MatrixPush)                                      \
  X(MATRIX_I8, matrix_i8, 7, 1u << 5, MatrixPush)                                  \
  X(MATRIX_I8_DOT, matrix_i8_dot, 7, 1u << 5, MatrixPush)                          \
  X(QUANTISE, quantise, 3, 6u, QuantisePush)                                       \
  X(LARGEST, largest, 3, 1u << 2, LargestPush)                                     \
  X(PREPARE, prepare, 5, 3u << 3, PreparePush)                                     \
  X(UNITS_F16, units_f16, 9, 7u << 5, UnitsPush)                                   \
  X(UNITS_Q8, units_q8, 9, 7u << 5, UnitsPush)                                     \
  X(UNITS_Q4, units_q4, 9, 7u << 5, UnitsPush)                                     \
  X(UNITS_F16_AT, units_f16_at, 9, 7u << 5, UnitsPush)                             \
  X(UNITS_Q8_AT, units_q8_at, 9, 7u << 5, UnitsPush)                               \
  X(UNITS_Q4_AT, units_q4_at, 9, 7u << 5, UnitsPush)                               \
  X(UNITS_PROBE, units_probe, 3, 1u << 2, MeasurePush)                             \
  X(NORM, norm, 3, 1u << 2, NormPush)                                              \
  X(ENTER, enter, 4, 3u << 2, NormPush)                                            \
  X(ENTER_FRAGMENTS, enter_fragments, 8, 3u << 2 | 3u << 6, NormPush)              \
  X(OUT, out, 6, 1u << 0 | 1u << 5, OutPush)                                       \
  X(OUT_FRAGMENTS, out_fragments, 14, 3u << 0 | 1u << 5 | 15u << 8, OutPush)       \
  X(CONV, conv, 4, 1u << 3, ConvPush)                                              \
  X(CONV_FRAGMENTS, conv_fragments, 9, 1u << 1 | 1u << 3 | 3u << 6, ConvPush)      \
  X(ACT, act, 3, 1u << 2, ActPush)                                                 \
  X(ACT_FRAGMENTS, act_fragments, 9, 7u << 0 | 3u << 5, ActPush)                   \
  X(HEADS, heads, 7, 1u << 3 | 1u << 6, HeadsPush)                                 \
  X(HEADS_SUMS, heads_sums, 11, 1u << 0 | 3u << 3 | 1u << 6 | 1u << 10, HeadsPush) \
  X(ROTATION, rotation, 3, 1u << 2, RotationPush)                                  \
  X(ATTEND, attend, 8, 3u << 6, AttendPush)                                        \
  X(ATTEND_UNITS, attend_units, 8, 3u << 6, AttendPush)                            \
  X(MIX, mix, 3, 1u << 2, MixPush)                                                 \
  X(MIX_FRAGMENTS, mix_fragments, 7, 1u << 2 | 3u << 5, MixPush)                   \
  X(TOP, top, 4, 7u << 1, TopPush)                                                 \
  X(GATHER, gather, 4, 1u << 3, GatherPush)                                        \
  X(PAIRS, pairs, 8, 7u << 5, PairsPush)                                           \
  X(READ, read, 2, 1u << 1, MeasurePush)                                           \
  X(MULTIPLY, multiply, 1, 1u << 0, MeasurePush)

enum {
#define VULKAN_KERNEL_ENUM(id, ...) VULKAN_KERNEL_##id,
  VULKAN_KERNELS(VULKAN_KERNEL_ENUM)
#undef VULKAN_KERNEL_ENUM
      VULKAN_KERNEL_COUNT
};

/* SPIR-V of a module, embedded by the build. */
typedef struct VulkanModule {
  const char *name;
  const uint32_t *words;
  size_t bytes;
} VulkanModule;

extern const VulkanModule vulkan_modules[VULKAN_KERNEL_COUNT]; /* in the order of VULKAN_KERNELS */

typedef struct VulkanKernelInfo {
  const char *name;
  uint32_t bindings, writes, push_bytes;
} VulkanKernelInfo;

const VulkanKernelInfo *vulkan_kernel_info(int kernel);

/* A kernel with its constants, ready to be bound. */
typedef struct VulkanPipeline {
  int kernel;
  uint32_t constants[VULKAN_MAX_CONSTANTS], constant_count;
  VkPipeline pipeline;
  VkPipelineLayout layout; /* shared; belongs to the set of pipelines */
  VkDescriptorSetLayout set;
} VulkanPipeline;

/* All pipelines of a model, each made when first asked for. */
typedef struct VulkanPipelines {
  VulkanPipeline **made; /* stable addresses */
  uint32_t count, capacity;
  VkDescriptorSetLayout sets[VULKAN_MAX_BINDINGS + 1]; /* by number of bindings */
  VkPipelineLayout layouts[VULKAN_MAX_BINDINGS + 1];   /* VULKAN_PUSH_BYTES of push constants each */
  VkPipelineCache cache;
} VulkanPipelines;

DflashStatus vulkan_pipeline_get(VulkanDevice *device, VulkanPipelines *pipelines, int kernel,
                                 const uint32_t *constants, uint32_t count, const VulkanPipeline **pipeline,
                                 DflashError *error);
void vulkan_pipelines_close(VulkanDevice *device, VulkanPipelines *pipelines);

#endif
