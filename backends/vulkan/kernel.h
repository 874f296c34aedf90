/* The kernels: one row of VULKAN_KERNELS each. Buffers are bound in the order of the comments; all are storage buffers
 * of set 0, tightly packed rows unless said. Push constants: shaders/push.h. A binding that a storage has no use for is
 * bound to any range. */
#ifndef DFLASH_VULKAN_KERNEL_H
#define DFLASH_VULKAN_KERNEL_H

#include "device.h"
#include "memory.h"
#include "shaders/push.h"

enum { VULKAN_MAX_BINDINGS = 10, VULKAN_MAX_CONSTANTS = 7, VULKAN_PUSH_BYTES = 64, VULKAN_MAX_PARTS = 64 };

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
 * threads largest: 0 x; 1 columns; 2 largest float[rows]; groups rows norm: 0 x; 1 weight; 2 y; groups rows out: 0 h
 * (in place); 1 x; 2 d float[rows][2 * taps * groups]; 3 base float[2][taps][width]; 4 weight; 5 norm; groups rows
 * conv: 0 x; 1 d; 2 base; 3 y; groups ceil(width / 256), rows
 * act: 0 gate; 1 up; 2 y; groups ceil(count / 256)
 * heads: 0 x [rows][heads][head_dim]; 1 weight; 2 table float[rows][2][half]: cos, sin; 3 y; groups heads, rows
 * rotation: 0 positions float[rows]; 1 inv_freq; 2 table; groups ceil(rows * half / 64)
 * attend: 0 q [rows][heads][head_dim]; 1 context K [len][kv_heads][head_dim]; 2 context V; 3 own K
 * [rows][kv_heads][head_dim]; 4 own V; 5 visible uint[1 + rows]: end, then each row's begin, as rows of K; begin of row
 * 0 is the smallest and none exceeds end; 6 sums float[parts][rows * heads][2]: largest score, sum of exp (an empty
 * part: -inf, 0); 7 mixes float[parts][rows * heads][head_dim], not divided by the sum constants: 0 head_dim, 1 queries
 * a workgroup takes, 2 keys a step; groups kv_heads, splits + 1, ceil(rows * heads / kv_heads / queries); 128 threads.
 * Query index within a kv head: row * rep + head % rep. Context part s sees K rows [b + s n, b + (s + 1) n) below end,
 * b the smallest begin, n = ceil((end - b) / splits) rounded up to the keys a step. A longer context takes a dispatch
 * for each segment: its rows are bound, begin and end cut to them, its parts go to part_first on; the last one adds the
 * block's own. mix: 0 sums; 1 mixes; 2 y
 * [rows][heads][head_dim]; groups heads, rows; 64 threads top: 0 logits [rows][width]; 1 values
 * float[rows][chunks][top]; 2 tokens int[rows][chunks][top] (-1 past the end of a chunk); 3 flags uint[1]: 1 where a
 * NaN was seen; groups chunks, rows; 256 threads top_merge: 0 values [rows][count]; 1 tokens; 2 best values
 * float[rows][top]; 3 best tokens int[rows][top]; groups rows gather: 0 codebook part (words); 1 best tokens; 2 anchor
 * int[1]; 3 y float[rows][top][rank]; groups rows, top, 1; 64 threads. Entries of tokens outside the part are left
 * alone. pairs: 0 P rows; 1 C rows, both float[rows][top][rank]; 2 hp float[rows][rank]; 3 pairs float[rows][top][top]:
 * [j][p][c]; row 0 has p = 0 alone; groups top, rows (p, j) choose: 0 best values; 1 best tokens; 2 pairs; 3 hp; 4
 * flags uint[1] (NaN in scores is added); 5 result int: chosen[rows], plain[rows], candidates[rows][top], then floats
 * scores[rows][top], then the flags; groups 1 read: 0 words uvec4[]; 1 sums uint[groups]; push count = uvec4s in all;
 * 256 threads, any number of groups multiply: 0 sums float[groups * 256]; push count = rounds of 64 multiply-adds a
 * thread */
/* Products on matrix units, coop.h:
 *
 * parts: 0 x; 1 columns; 2 largest, where P is 1; 3 parts uvec4[rows][P][2 * ceil(cols / 16)]: eight f16 each, in the
 * order in which the product decodes columns; 4 factors float[rows][2]: both together undo the power of two. Constants:
 * 0 P, 1 (profile f16) or 3; 1 bits of a stored weight: 4, 8 or 16; 2 whether a direct kernel reads them. Groups:
 * ceil(cols / 2048), rows; 256 threads
 *
 * coop_*: 0 weights, 1 scales, 2 codes as above; 3 parts; 4 factors; 5 y; coop_i8: 3 words; 4 scales of x. Constants: 0
 * threads, 32 a subgroup; 1 rows of x a workgroup takes: 8 or 16; 2 tiles of 16 rows of w a subgroup takes; 3 slices of
 * the columns (subgroups / slices is the number of bands of rows); 4 columns of a step; 5 steps of weights in flight; 6
 * P. Groups: ceil(out_rows / (16 * tiles * bands)), ceil(rows / constant 1), splits
 *
 * coop_*_direct: the same, decoding into registers; only where coop_probe finds the places of elements as they expect
 *
 * coop_probe: 0 places uint[32][count] (coop_probe.comp); groups 1; push count = elements of a thread
 *
 * coop_sum: 0 found float[splits][rows][out_rows]; 1 y; groups ceil(out_rows / 256), rows */
#define VULKAN_KERNELS(X)                                 \
  X(MATRIX_F32, matrix_f32, 6, 1u << 5, MatrixPush)       \
  X(MATRIX_F16, matrix_f16, 6, 1u << 5, MatrixPush)       \
  X(MATRIX_BF16, matrix_bf16, 6, 1u << 5, MatrixPush)     \
  X(MATRIX_Q8, matrix_q8, 6, 1u << 5, MatrixPush)         \
  X(MATRIX_Q4, matrix_q4, 6, 1u << 5, MatrixPush)         \
  X(HALF_F32, half_f32, 7, 1u << 5, MatrixPush)           \
  X(HALF_F16, half_f16, 7, 1u << 5, MatrixPush)           \
  X(HALF_BF16, half_bf16, 7, 1u << 5, MatrixPush)         \
  X(HALF_Q8, half_q8, 7, 1u << 5, MatrixPush)             \
  X(HALF_Q4, half_q4, 7, 1u << 5, MatrixPush)             \
  X(MATRIX_I8, matrix_i8, 7, 1u << 5, MatrixPush)         \
  X(MATRIX_I8_DOT, matrix_i8_dot, 7, 1u << 5, MatrixPush) \
  X(QUANTISE, quantise, 3, 6u, QuantisePush)              \
  X(LARGEST, largest, 3, 1u << 2, LargestPush)            \
  X(PARTS, parts, 5, 3u << 3, PartsPush)                  \
  X(COOP_F16, coop_f16, 6, 1u << 5, CoopPush)             \
  X(COOP_Q8, coop_q8, 6, 1u << 5, CoopPush)               \
  X(COOP_Q4, coop_q4, 6, 1u << 5, CoopPush)               \
  X(COOP_I8, coop_i8, 6, 1u << 5, CoopPush)               \
  X(COOP_Q8_DIRECT, coop_q8_direct, 6, 1u << 5, CoopPush) \
  X(COOP_Q4_DIRECT, coop_q4_direct, 6, 1u << 5, CoopPush) \
  X(COOP_PROBE, coop_probe, 1, 1u << 0, MeasurePush)      \
  X(COOP_SUM, coop_sum, 2, 1u << 1, CoopSumPush)          \
  X(NORM, norm, 3, 1u << 2, NormPush)                     \
  X(OUT, out, 6, 1u << 0 | 1u << 5, OutPush)              \
  X(CONV, conv, 4, 1u << 3, ConvPush)                     \
  X(ACT, act, 3, 1u << 2, ActPush)                        \
  X(HEADS, heads, 4, 1u << 3, HeadsPush)                  \
  X(ROTATION, rotation, 3, 1u << 2, RotationPush)         \
  X(ATTEND, attend, 8, 3u << 6, AttendPush)               \
  X(MIX, mix, 3, 1u << 2, MixPush)                        \
  X(TOP, top, 4, 7u << 1, TopPush)                        \
  X(TOP_MERGE, top_merge, 4, 3u << 2, TopMergePush)       \
  X(GATHER, gather, 4, 1u << 3, GatherPush)               \
  X(PAIRS, pairs, 4, 1u << 3, PairsPush)                  \
  X(CHOOSE, choose, 6, 3u << 4, ChoosePush)               \
  X(READ, read, 2, 1u << 1, MeasurePush)                  \
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
