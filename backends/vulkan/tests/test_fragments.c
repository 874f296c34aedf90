/* Kernels that make an activation and prepare it, of products that may come in sums: to the bit what the plain kernel
 * makes of the products, and what `prepare` makes of that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "draw.h"
#include "launch.h"
#include "rows.h"
#include "units.h"
#include "values.h"

enum { LANES = 32, MOST_OWN = 8, FORMS = 2, SUMS = 3, ROWS = 11, X_TILES = 2, WORDS = 4 };

/* A kernel with what it binds: `y` is the array that is prepared. */
typedef struct Case {
  int plain, fragments;
  TestArray own[MOST_OWN];
  uint32_t count, y;
  uint32_t constants[VULKAN_MAX_CONSTANTS], constant_count;
  const void *push;
  uint32_t groups[3], more_groups; /* along x; that prepare columns past the last */
  uint32_t cols, row_first;
  int forms;                              /* that the kernel can prepare */
  uint32_t products[SUMS], product_count; /* arrays that may come in sums */
} Case;

/* What is prepared: parts or integers; whether each form has a column field. Splits of the first product; each other
 * one has one more. */
typedef struct Wanted {
  uint32_t parts, integers, fields[FORMS];
  int forms;
  uint32_t splits;
} Wanted;

static const Wanted WANTED[] = {{3, 0, {0, 0}, 1, 1}, {3, 0, {1, 0}, 1, 2}, {1, 0, {1, 0}, 1, 5}, {1, 1, {0, 0}, 1, 7},
                                {3, 0, {1, 1}, 2, 1}, {1, 0, {0, 1}, 2, 3}, {3, 0, {1, 0}, 2, 4}};
enum { WANTED_COUNT = sizeof WANTED / sizeof *WANTED };

typedef struct Prepared {
  uint32_t *words;
  float *factors;
  size_t word_bytes, factor_bytes;
} Prepared;

static uint32_t pairs[VULKAN_UNITS_PAIRS];

static uint32_t groups_of(uint32_t cols) { return (uint32_t)vulkan_units_groups(DFLASH_STORAGE_Q4TP, cols); }

static Prepared open_prepared(uint32_t cols, uint32_t parts) {
  const size_t groups = (size_t)X_TILES * groups_of(cols);
  Prepared p = {.word_bytes = groups * parts * LANES * WORDS * 4, .factor_bytes = groups * 8 * 4};
  p.words = test_memory(p.word_bytes, 1);
  p.factors = test_memory(p.factor_bytes, 1);
  memset(p.words, 0xff, p.word_bytes);
  memset(p.factors, 0xff, p.factor_bytes);
  return p;
}

static void close_prepared(Prepared *p) {
  free(p->words);
  free(p->factors);
}

/* Own arrays as they were: for a kernel that works in place. */
static void copy_own(const Case *c, TestArray *copies) {
  for (uint32_t i = 0; i < c->count; i++) {
    copies[i] = (TestArray){test_memory(c->own[i].bytes, 1), c->own[i].bytes};
    memcpy(copies[i].data, c->own[i].data, c->own[i].bytes);
  }
}

static void run_plain(TestKernels *kernels, const Case *c, TestArray *own) {
  copy_own(c, own);
  test_launch(kernels,
              &(TestLaunch){
                  c->plain, c->constants, c->constant_count, own, c->push, {c->groups[0], c->groups[1], c->groups[2]}});
}

/* ---- sums ---- */

static uint32_t splits_of(const Wanted *w, uint32_t product) {
  return w->splits + product < 32 ? w->splits + product : 32;
}

static size_t width_of(const TestArray *product) { return product->bytes / sizeof(float) / ROWS; }

/* Draws the sums of each product, and makes the product what they add up to, in their order. */
static void draw_sums(const Case *c, const Wanted *w, float *sums[SUMS]) {
  for (uint32_t p = 0; p < c->product_count; p++) {
    const TestArray *product = &c->own[c->products[p]];
    const size_t width = width_of(product), splits = splits_of(w, p);
    sums[p] = test_drawn(ROWS * splits * width, p ? "other sums" : "sums");
    for (size_t i = 0; i < ROWS * width; i++) {
      const float *first = sums[p] + i / width * splits * width + i % width;
      volatile float sum = first[0];
      for (size_t s = 1; s < splits; s++) sum += first[s * width];
      ((float *)product->data)[i] = sum;
    }
  }
}

/* Binds the sums, and poison in the place of what they add up to. */
static void bind_sums(const Case *c, const Wanted *w, float *const sums[SUMS], TestArray *own, TestArray *behind) {
  for (uint32_t p = 0; p < c->product_count; p++) {
    TestArray *product = &own[c->products[p]];
    behind[p] = (TestArray){sums[p], product->bytes * splits_of(w, p)};
    if (splits_of(w, p) > 1) memset(product->data, 0xff, product->bytes);
  }
}

static void run_fragments(TestKernels *kernels, const Case *c, const Wanted *w, float *const fields[FORMS],
                          float *const sums[SUMS], Prepared made[FORMS], TestArray *own) {
  TestArray arrays[VULKAN_MAX_BINDINGS];
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t more[] = {w->parts, w->integers, w->fields[0], (uint32_t)w->forms, w->fields[1]};
  const uint32_t ranges = c->forms == 1 ? 4 : 7, values = c->forms == 1 ? 3 : 5;
  const size_t row = c->cols * sizeof(float);
  const TestArray behind[] = {{fields[0], row},
                              {pairs, sizeof pairs},
                              {made[0].words, made[0].word_bytes},
                              {made[0].factors, made[0].factor_bytes},
                              {made[1].words, made[1].word_bytes},
                              {made[1].factors, made[1].factor_bytes},
                              {fields[1], row}};
  copy_own(c, own);
  bind_sums(c, w, sums, own, arrays + c->count + ranges);
  memcpy(arrays, own, c->count * sizeof *own);
  memcpy(arrays + c->count, behind, ranges * sizeof *behind);
  memcpy(constants, c->constants, sizeof c->constants);
  memcpy(constants + c->constant_count, more, values * sizeof *more);
  for (uint32_t p = 0; p < c->product_count; p++) constants[c->constant_count + values + p] = splits_of(w, p);
  test_launch(kernels, &(TestLaunch){c->fragments,
                                     constants,
                                     c->constant_count + values + c->product_count,
                                     arrays,
                                     c->push,
                                     {c->groups[0] + c->more_groups, c->groups[1], c->groups[2]}});
}

static Prepared prepare(TestKernels *kernels, const Case *c, const Wanted *w, int form, float *field,
                        const TestArray *y) {
  const PreparePush push = {c->row_first, c->cols, ROWS - c->row_first, c->cols, w->fields[form], groups_of(c->cols)};
  Prepared p = open_prepared(c->cols, w->parts);
  const TestArray arrays[] = {*y,
                              {field, c->cols * sizeof(float)},
                              {pairs, sizeof pairs},
                              {p.words, p.word_bytes},
                              {p.factors, p.factor_bytes}};
  test_launch(kernels, &(TestLaunch){VULKAN_KERNEL_PREPARE,
                                     (const uint32_t[]){w->parts, w->integers},
                                     2,
                                     arrays,
                                     &push,
                                     {(push.groups + 15) / 16, 8 * X_TILES, 1}});
  return p;
}

/* Two f16: a zero is one, whatever its sign. */
static uint32_t without_sign_of_zeros(uint32_t word) {
  if ((word & 0x7fff) == 0) word &= 0xffff0000;
  if ((word & 0x7fff0000) == 0) word &= 0x0000ffff;
  return word;
}

/* The same in all rows that there are; the others are left alone. */
static void compare(const Case *c, const Wanted *w, const Prepared *made, const Prepared *expected) {
  const uint32_t groups = groups_of(c->cols), rows = ROWS - c->row_first;
  const size_t threads = made->word_bytes / 16;
  for (size_t i = 0; i < threads; i++)
    for (uint32_t n = 0; n < WORDS; n++) {
      const uint32_t got = without_sign_of_zeros(made->words[i * WORDS + n]);
      const uint32_t row = (uint32_t)(i / LANES / w->parts / groups * 8 + i % LANES / 4);
      if (got != (row < rows ? without_sign_of_zeros(expected->words[i * WORDS + n]) : UINT32_MAX))
        fail_msg("kernel %d, %u columns: word %u of thread %zu, row %u: %08x", c->fragments, c->cols, n, i, row, got);
    }
  for (uint32_t i = 0; i < X_TILES * groups * 8; i++) {
    const uint32_t row = i / 8 / groups * 8 + i % 8;
    assert_int_equal(test_bits(made->factors[i]), row < rows ? test_bits(expected->factors[i]) : UINT32_MAX);
  }
}

static void check_wanted(TestKernels *kernels, const Case *c, const Wanted *w) {
  TestArray plain[MOST_OWN], own[MOST_OWN];
  float *fields[FORMS] = {test_drawn(c->cols, "field"), test_drawn(c->cols, "other field")};
  Prepared made[FORMS] = {open_prepared(c->cols, w->parts), open_prepared(c->cols, w->parts)};
  float *sums[SUMS];
  draw_sums(c, w, sums);
  run_plain(kernels, c, plain);
  run_fragments(kernels, c, w, fields, sums, made, own);
  for (uint32_t p = 0; p < c->product_count; p++) free(sums[p]);
  for (int form = 0; form < FORMS && form < w->forms; form++) {
    Prepared expected = prepare(kernels, c, w, form, fields[form], &plain[c->y]);
    compare(c, w, &made[form], &expected);
    close_prepared(&expected);
  }
  for (uint32_t i = 0; i < c->count; i++) {
    assert_memory_equal(own[i].data, plain[i].data, plain[i].bytes);
    free(own[i].data);
    free(plain[i].data);
  }
  for (int form = 0; form < FORMS; form++) {
    close_prepared(&made[form]);
    free(fields[form]);
  }
}

static void check(TestKernels *kernels, const Case *c, uint32_t which) {
  for (uint32_t i = 0; i < WANTED_COUNT; i++)
    if (WANTED[i].forms <= c->forms && (c->cols < 600 || i % 3 == which % 3)) check_wanted(kernels, c, &WANTED[i]);
  for (uint32_t i = 0; i < c->count; i++) free(c->own[i].data);
}

static TestArray drawn(size_t count, const char *name) {
  return (TestArray){test_drawn(count, name), count * sizeof(float)};
}

static TestArray poisoned(size_t count) { return (TestArray){test_poisoned(count), count * sizeof(float)}; }

static const uint32_t WIDTHS[] = {2, 62, 352, 514, 1030, 4864};
#define EACH_WIDTH(i) for (uint32_t i = 0; i < sizeof WIDTHS / sizeof *WIDTHS; i++)

static void conv(void **state) {
  enum { TAPS = 2, GROUP = 2 };
  TestKernels *kernels = *state;
  EACH_WIDTH(i) {
    const uint32_t width = WIDTHS[i], groups = width / GROUP;
    const ConvPush push = {width, groups};
    const DflashGeometry g = {.hidden = width, .conv_group = GROUP, .conv_kernel = TAPS};
    Case c = {.plain = VULKAN_KERNEL_CONV,
              .fragments = VULKAN_KERNEL_CONV_FRAGMENTS,
              .own = {drawn((size_t)ROWS * width, "x"), drawn((size_t)ROWS * 2 * TAPS * groups, "d"),
                      drawn((size_t)2 * TAPS * width, "base"), poisoned((size_t)ROWS * width)},
              .count = 4,
              .y = 3,
              .push = &push,
              .cols = width,
              .forms = 1,
              .products = {1},
              .product_count = 1};
    c.constant_count = vulkan_row_constants(&kernels->device.traits, &g, c.plain, c.constants);
    memcpy(c.groups, (uint32_t[]){vulkan_row_groups(c.constants, width), ROWS, 1}, sizeof c.groups);
    check(kernels, &c, i);
  }
}

/* Also with fewer workgroups than there are pieces for. */
static void act(void **state) {
  TestKernels *kernels = *state;
  EACH_WIDTH(i) {
    const uint32_t width = WIDTHS[i];
    const ActPush push = {width};
    const DflashGeometry g = {.intermediate = width};
    Case c = {
        .plain = VULKAN_KERNEL_ACT,
        .fragments = VULKAN_KERNEL_ACT_FRAGMENTS,
        .own = {drawn((size_t)ROWS * width, "gate"), drawn((size_t)ROWS * width, "up"), poisoned((size_t)ROWS * width)},
        .count = 3,
        .y = 2,
        .push = &push,
        .cols = width,
        .forms = 1,
        .products = {0, 1},
        .product_count = 2};
    c.constant_count = vulkan_row_constants(&kernels->device.traits, &g, c.plain, c.constants);
    const uint32_t groups = vulkan_row_groups(c.constants, width);
    memcpy(c.groups, (uint32_t[]){i % 2 && groups > 2 ? 2 : groups, ROWS, 1}, sizeof c.groups);
    check(kernels, &c, i);
  }
}

static void enter(void **state) {
  TestKernels *kernels = *state;
  EACH_WIDTH(i) {
    const uint32_t width = WIDTHS[i];
    const NormPush push = {width, 1 / (float)width, 1e-6F};
    const DflashGeometry g = {.hidden = width};
    Case c = {.plain = VULKAN_KERNEL_ENTER,
              .fragments = VULKAN_KERNEL_ENTER_FRAGMENTS,
              .own = {drawn((size_t)ROWS * width, "x"), drawn(width, "weight"), poisoned((size_t)ROWS * width),
                      poisoned((size_t)ROWS * width)},
              .count = 4,
              .y = 2,
              .push = &push,
              .groups = {ROWS, 1, 1},
              .cols = width,
              .forms = 1};
    c.constant_count = vulkan_row_constants(&kernels->device.traits, &g, c.plain, c.constants);
    check(kernels, &c, i);
  }
}

/* On a device that takes no more threads; what is prepared may begin at a later row. */
static void check_out(TestKernels *kernels, uint32_t i, uint32_t threads, uint32_t row_first) {
  enum { TAPS = 3, GROUP = 2 };
  const uint32_t width = WIDTHS[i], groups = width / GROUP;
  const OutPush push = {width, groups, 1 / (float)width, 1e-6F, row_first};
  const DflashGeometry g = {.hidden = width, .conv_group = GROUP, .conv_kernel = TAPS};
  const VulkanTraits traits = {.max_threads = threads};
  Case c = {.plain = VULKAN_KERNEL_OUT,
            .fragments = VULKAN_KERNEL_OUT_FRAGMENTS,
            .own = {drawn((size_t)ROWS * width, "h"), drawn((size_t)ROWS * width, "x"),
                    drawn((size_t)ROWS * 2 * TAPS * groups, "d"), drawn((size_t)2 * TAPS * width, "base"),
                    drawn(width, "weight"), poisoned((size_t)ROWS * width)},
            .count = 6,
            .y = 5,
            .push = &push,
            .groups = {ROWS, 1, 1},
            .cols = width,
            .row_first = row_first,
            .forms = 2,
            .products = {1},
            .product_count = 1};
  c.constant_count = vulkan_row_constants(&traits, &g, c.plain, c.constants);
  if (vulkan_row_is_kept(c.constants[2])) check(kernels, &c, i);
}

static void out(void **state) {
  EACH_WIDTH(i) check_out(*state, i, 512, i % 2);
  check_out(*state, 3, 256, 1);
  check_out(*state, 4, 256, 0);
}

/* Heads of 1, 3 and 5 groups, and rows of which a last workgroup makes nothing. */
static void mix(void **state) {
  static const uint32_t SIZES[][2] = {{1, 32}, {3, 96}, {5, 160}, {8, 128}, {4, 32}}; /* heads, head_dim */
  enum { PARTS = 5 };
  TestKernels *kernels = *state;
  for (uint32_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
    const uint32_t heads = SIZES[i][0], dim = SIZES[i][1], cols = heads * dim;
    const MixPush push = {ROWS, heads, dim, PARTS};
    Case c = {.plain = VULKAN_KERNEL_MIX,
              .fragments = VULKAN_KERNEL_MIX_FRAGMENTS,
              .own = {drawn((size_t)PARTS * ROWS * heads * 2, "sums"), drawn((size_t)PARTS * ROWS * cols, "mixes"),
                      poisoned((size_t)ROWS * cols)},
              .count = 3,
              .y = 2,
              .constants = {vulkan_mix_threads(&kernels->device.traits)},
              .constant_count = 1,
              .push = &push,
              .groups = {heads, ROWS, 1},
              .cols = cols,
              .forms = 1};
    float *sums = c.own[0].data;
    for (uint32_t n = 1; n < PARTS * ROWS * heads * 2; n += 2) sums[n] = 1 + fabsf(sums[n]);
    c.more_groups = (groups_of(cols) * 32 + dim - 1) / dim - heads;
    check(kernels, &c, i);
  }
}

/* ---- heads ---- */

enum { HEADS = 5, OTHERS = 2, MOST_DIM = 250 };

typedef struct Heads {
  float x[ROWS * HEADS * MOST_DIM], other_x[ROWS * OTHERS * MOST_DIM], v[ROWS * OTHERS * MOST_DIM];
  float y[ROWS * HEADS * MOST_DIM], other_y[ROWS * OTHERS * MOST_DIM];
} Heads;

/* Of sums, where there are splits: then what they add up to is written. */
static void run_heads(TestKernels *kernels, const Case *c, const Wanted *w, float *const sums[SUMS], uint32_t dim,
                      float *weight, float *table, Heads *h) {
  const HeadsPush push = {HEADS, OTHERS, dim, 1, 0, 1 / (float)dim, 1e-6F};
  const size_t wide = (size_t)ROWS * HEADS * dim * 4, narrow = (size_t)ROWS * OTHERS * dim * 4;
  const uint32_t turns = (dim / 2 + 63) / 64, v_heads = w && splits_of(w, 2) > 1 ? OTHERS : 0;
  TestArray arrays[11] = {{h->x, wide},
                          {weight, dim * sizeof(float)},
                          {table, (size_t)ROWS * dim * 4},
                          {h->y, wide},
                          {h->other_x, narrow},
                          {weight, dim * sizeof(float)},
                          {h->other_y, narrow},
                          {NULL, 0},
                          {NULL, 0},
                          {NULL, 0},
                          {h->v, narrow}};
  TestArray own[] = {arrays[0], arrays[4], arrays[10]};
  if (w) bind_sums(c, w, sums, own, arrays + 7);
  const uint32_t constants[] = {turns, w ? splits_of(w, 0) : 1, w ? splits_of(w, 1) : 1, w ? splits_of(w, 2) : 1};
  memset(h->y, 0xff, wide);
  memset(h->other_y, 0xff, narrow);
  test_launch(kernels, &(TestLaunch){w ? VULKAN_KERNEL_HEADS_SUMS : VULKAN_KERNEL_HEADS,
                                     constants,
                                     w ? 4 : 1,
                                     arrays,
                                     &push,
                                     {HEADS + OTHERS + v_heads, ROWS, 1}});
}

static void check_heads(TestKernels *kernels, uint32_t dim, uint32_t splits) {
  static Heads plain, joined;
  const Wanted w = {.splits = splits};
  const size_t wide = (size_t)ROWS * HEADS * dim * 4, narrow = (size_t)ROWS * OTHERS * dim * 4;
  const Case c = {
      .own = {{plain.x, wide}, {plain.other_x, narrow}, {plain.v, narrow}}, .products = {0, 1, 2}, .product_count = 3};
  float *sums[SUMS], *weight = test_drawn(dim, "weight"), *table = test_drawn((size_t)ROWS * dim, "table");
  draw_sums(&c, &w, sums);
  joined = plain;
  run_heads(kernels, &c, NULL, sums, dim, weight, table, &plain);
  run_heads(kernels, &c, &w, sums, dim, weight, table, &joined);
  assert_memory_equal(joined.x, plain.x, wide);
  assert_memory_equal(joined.other_x, plain.other_x, narrow);
  assert_memory_equal(joined.v, plain.v, narrow);
  assert_memory_equal(joined.y, plain.y, wide);
  assert_memory_equal(joined.other_y, plain.other_y, narrow);
  for (int i = 0; i < SUMS; i++) free(sums[i]);
  free(weight);
  free(table);
}

static void heads(void **state) {
  static const uint32_t DIMS[] = {2, 34, 64, 128, 130, MOST_DIM};
  for (uint32_t i = 0; i < sizeof DIMS / sizeof *DIMS; i++) check_heads(*state, DIMS[i], i + 1);
  check_heads(*state, 128, 12);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  vulkan_units_pairs(pairs);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(conv, &kernels),  cmocka_unit_test_prestate(act, &kernels),
      cmocka_unit_test_prestate(enter, &kernels), cmocka_unit_test_prestate(out, &kernels),
      cmocka_unit_test_prestate(mix, &kernels),   cmocka_unit_test_prestate(heads, &kernels)};
  const int failed = cmocka_run_group_tests_name("fragments", tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : 1;
}
