/* Products on matrix units: what weights and activations look like in memory, which matrices are multiplied so, and the
 * steps of a product. Storages q4tp, q8_2f and f16, all profiles: int8 values are integers that f16 holds, too.
 *
 * A fragment is 16 rows x 16 columns of w, or 16 columns x 8 rows of x. Of a fragment of w thread i of a subgroup of 32
 * holds eight elements, vulkan_units_w(i, n), of x four, vulkan_units_x(i, n), of the products four,
 * vulkan_units_y(i, n); a device that holds them elsewhere (vulkan_units_probe) has no matrix units for this backend.
 *
 * w: tiles of 16 rows; of each, pieces of `vulkan_units_piece(storage)` columns (q4tp 64, q8_2f 32, f16 16), as many as
 * cover the columns, in wholes of 256; of each, 32 x 16 bytes, thread by thread:
 * - q4tp: words 2 g and 2 g + 1 are both fragments of the piece's g-th 32 columns; nibble p is of fragment p % 2,
 *   elements 0 0 2 2 1 1 3 3 of the first word, 4 4 6 6 5 5 7 7 of the second, ^ 8
 * - q8_2f: words 2 f and 2 f + 1 are fragment f; bytes are elements 0 2 1 3 of the first word, 4 6 5 7, as they are
 * - f16: words are elements 0 1, 2 3, 4 5, 6 7
 *
 * Columns past the last are 0 (q4tp: nibble 8 ^ 8), and so are rows past the last.
 * codes of q4tp: uint[tiles][pieces / 4][32]: of eight groups of 32 columns, a byte each. Thread 4 r + t has, lowest
 * byte first, group t of rows r and r + 8, then group t + 4 of the same. Groups and rows past the last have code 0.
 *
 * x: tiles of 8 rows; of each, groups of 32 columns, 2, 1 or 1/2 a piece; of each, PARTS parts (1; exact: 3); of each,
 * 32 x 16 bytes, thread by thread: words 0, 1: the first fragment's elements 0 1, 2 3; words 2, 3: the second's. And a
 * factor a row and group, float[tiles][groups][8]. Columns past the last are 0; the factor of zeros is 0. Rows past the
 * last may hold anything: a row of x reaches its own products alone, and theirs are dropped.
 * - exact, f16: the group is scaled by 2^k, its factor is 2^-k: k as large as absmax 2^k <= 2^14 allows, 126 at most
 *   (0 where absmax is not finite). part 0 is X = x 2^k rounded to f16; what is left times 2^11 is R; part 1 is R
 *   rounded to f16, part 2 what then is left of R, rounded to f16. (|X| >= 2^-12: all 24 bits.)
 * - i8, of a q4tp matrix: one part, integers (quantise.comp); the factor is their step.
 *
 * Pieces of any storage cover the same columns, so that products of all of them can share x. */
#ifndef DFLASH_VULKAN_UNITS_H
#define DFLASH_VULKAN_UNITS_H

#include "sequence.h"

typedef struct VulkanPlace {
  uint32_t row, col;
} VulkanPlace;
VulkanPlace vulkan_units_w(uint32_t thread, uint32_t n); /* n < 8: row and column of w's fragment */
VulkanPlace vulkan_units_x(uint32_t thread, uint32_t n); /* n < 4: .row the row of x, .col the column */
VulkanPlace vulkan_units_y(uint32_t thread, uint32_t n); /* n < 4: .row the row of w, .col the row of x */
/* Asks the device, by a product of known numbers; waits for it. *fits stays false where it has no units of that kind.
 */
DflashStatus vulkan_units_probe(VulkanDevice *device, VulkanPipelines *pipelines, bool *fits, DflashError *error);

int64_t vulkan_units_piece(int32_t storage);                /* columns */
int64_t vulkan_units_pieces(int32_t storage, int64_t cols); /* of whole 256 columns */
int64_t vulkan_units_groups(int32_t storage, int64_t cols); /* of 32 columns, as many as the pieces have */
int64_t vulkan_units_tiles(int64_t rows);                   /* of 16 rows of w */

/* What units_* bind as masks: of the nibbles, and of the bytes, that become a pair of f16; and a pair of -8 * 2^-24. */
enum { VULKAN_UNITS_MASKS = 3 };
void vulkan_units_masks(uint32_t masks[VULKAN_UNITS_MASKS]);
/* What prepare binds: uint[64]: where the pair of columns 2 j, 2 j + 1 of a row of x stands in a fragment: [8 j + row],
 * j < 8, row < 8: 2 * thread + word. */
enum { VULKAN_UNITS_PAIRS = 64 };
void vulkan_units_pairs(uint32_t pairs[VULKAN_UNITS_PAIRS]);

/* Whether the model multiplies this matrix on matrix units. Decided by profile, device, options and storage alone. */
bool vulkan_units_take(const DflashModel *model, int32_t storage);

/* How x comes to a workgroup: through the cache when it is used, through shared memory, or through the cache a step
 * ahead. */
enum { VULKAN_X_CACHE, VULKAN_X_SHARED, VULKAN_X_AHEAD };

/* The constants of the kernels units_*, in kernel.h's order. */
typedef struct VulkanUnitsTile {
  uint32_t threads, x_tiles, tiles, x_way, parts, pieces, plain, rung_step, shares;
} VulkanUnitsTile;
enum { VULKAN_UNITS_CONSTANTS = 9 };
void vulkan_units_constants(const VulkanUnitsTile *tile, uint32_t constants[VULKAN_UNITS_CONSTANTS]);
VulkanUnitsTile vulkan_units_tile(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows);
int vulkan_units_kernel(const DflashModel *model, const VulkanMatrix *matrix);
/* Rows of the matrix that a workgroup takes. */
uint32_t vulkan_units_group_rows(const VulkanUnitsTile *tile);
/* Bytes of shared memory of a workgroup. */
uint64_t vulkan_units_shared(const VulkanUnitsTile *tile, int32_t storage);
/* Parts of f16 that x becomes, or 1 of integers. */
uint32_t vulkan_units_parts(const DflashModel *model, int32_t storage);
/* Whether x becomes integers; else parts of f16. */
bool vulkan_units_integers(const DflashModel *model, int32_t storage);
/* Workgroups that share the columns of a row of the matrix. They change the order of sums, and so they do not depend on
 * the rows of a call: most_rows are those of the largest call of its kind. */
uint32_t vulkan_units_splits(const DflashModel *model, const VulkanMatrix *matrix, int64_t most_rows);

/* Of a product of up to most_rows rows. */
VulkanUnitsBytes vulkan_units_product_bytes(const DflashModel *model, const VulkanMatrix *matrix, int64_t most_rows);
/* units_scratch.c: bytes for any product of up to most_rows rows that the model has on matrix units; all 0 where it has
 * none. */
VulkanUnitsBytes vulkan_units_bytes(DflashModel *model, int64_t most_rows);
/* The most rows of x, up to `rows`, that are prepared at once, for any product of the model, and one binding shows. */
int64_t vulkan_units_most_rows(DflashModel *model, int64_t rows);
/* units_scratch.c: counters of each of the products that may run at once, in a buffer of their own that is not filled
 * with anything else. */
DflashStatus vulkan_units_open_arrivals(DflashSequence *s, DflashError *error);
VulkanRange vulkan_units_arrivals(const DflashSequence *s, int product);

DflashStatus vulkan_steps_units_product(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                        DflashError *error);
/* The same, cut as it is said here. */
DflashStatus vulkan_steps_units_cut(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                    const VulkanUnitsTile *tile, uint32_t splits, DflashError *error);

#endif
