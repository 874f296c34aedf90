/* Shared memory of the kernels, from their SPIR-V: what the constants chosen for a device take, it has. */
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "draw.h"
#include "fixture.h"
#include "fragments.h"
#include "kernel.h"
#include "units.h"

enum { LEAST_SHARED = 16384, MOST_SHARED = 32768, WORKGROUP = 4, SPEC_ID = 1, FIRST = 5 };

/* Numbers of SPIR-V's instructions. */
enum {
  TYPE_BOOL = 20,
  TYPE_INT = 21,
  TYPE_FLOAT = 22,
  TYPE_VECTOR = 23,
  TYPE_ARRAY = 28,
  TYPE_STRUCT = 30,
  TYPE_POINTER = 32,
  CONSTANT = 43,
  SPEC_CONSTANT = 50,
  SPEC_COMPOSITE = 51,
  SPEC_CONSTANT_OP = 52,
  VARIABLE = 59,
  DECORATE = 71
};

/* What is known of an id: the value of a constant, of a vector's first component, or the bytes of a type. */
typedef struct Id {
  uint64_t value, bytes;
  int64_t spec; /* number of the constant; -1: none */
} Id;

typedef struct Reader {
  Id *ids;
  const uint32_t *constants;
  uint32_t count;
  uint64_t shared;
} Reader;

/* Shows where a size depends on it. */
#define UNKNOWN (UINT64_C(1) << 40)

static uint64_t operate(uint32_t operation, uint64_t a, uint64_t b, uint64_t c) {
  switch (operation) {
  case 81: /* CompositeExtract, of the first component: gl_WorkGroupSize.x */
    return a;
  case 128: /* IAdd */
    return a + b;
  case 130: /* ISub */
    return a - b;
  case 132: /* IMul */
    return a * b;
  case 134: /* UDiv */
    return b > 0 ? a / b : UNKNOWN;
  case 137: /* UMod */
    return b > 0 ? a % b : UNKNOWN;
  case 169: /* Select */
    return a ? b : c;
  case 170: /* IEqual */
    return a == b;
  case 172: /* UGreaterThan */
    return a > b;
  case 176: /* ULessThan */
    return a < b;
  case 197: /* BitwiseOr */
    return a | b;
  case 199: /* BitwiseAnd */
    return a & b;
  default:
    return UNKNOWN;
  }
}

static void read_type(Reader *r, uint32_t code, const uint32_t *w, uint32_t length) {
  Id *id = &r->ids[w[1]];
  if (code == TYPE_BOOL) id->bytes = 4;
  if (code == TYPE_INT || code == TYPE_FLOAT) id->bytes = w[2] / 8;
  if (code == TYPE_VECTOR) id->bytes = r->ids[w[2]].bytes * w[3];
  if (code == TYPE_ARRAY) id->bytes = r->ids[w[2]].bytes * r->ids[w[3]].value;
  if (code == TYPE_POINTER) id->bytes = r->ids[w[3]].bytes;
  for (uint32_t i = 2; code == TYPE_STRUCT && i < length; i++) id->bytes += r->ids[w[i]].bytes;
}

static void read_constant(Reader *r, uint32_t code, const uint32_t *w, uint32_t length) {
  Id *id = &r->ids[w[2]];
  if (code == SPEC_COMPOSITE) {
    id->value = r->ids[w[3]].value;
  } else if (code == SPEC_CONSTANT_OP) {
    uint64_t values[3] = {0};
    for (uint32_t i = 4; i < length && i < 7; i++) values[i - 4] = r->ids[w[i]].value;
    id->value = operate(w[3], values[0], values[1], values[2]);
  } else {
    id->value = id->spec >= 0 && id->spec < r->count ? r->constants[id->spec] : w[3];
  }
}

/* Bytes of all variables of a workgroup. */
static uint64_t shared_bytes(const VulkanModule *module, const uint32_t *constants, uint32_t count) {
  const uint32_t *words = module->words, ids = words[3];
  Reader r = {.ids = test_memory(ids, sizeof(Id)), .constants = constants, .count = count};
  for (uint32_t i = 0; i < ids; i++) r.ids[i].spec = -1;
  for (size_t at = FIRST, length; at < module->bytes / 4; at += length) {
    const uint32_t code = words[at] & 0xffff, *w = words + at;
    length = words[at] >> 16;
    assert_true(length > 0);
    if (code == DECORATE && w[2] == SPEC_ID) r.ids[w[1]].spec = w[3];
    if (code >= TYPE_BOOL && code <= TYPE_POINTER) read_type(&r, code, w, (uint32_t)length);
    if (code == CONSTANT || (code >= SPEC_CONSTANT && code <= SPEC_CONSTANT_OP))
      read_constant(&r, code, w, (uint32_t)length);
    if (code == VARIABLE && w[3] == WORKGROUP) r.shared += r.ids[w[1]].bytes;
  }
  free(r.ids);
  return r.shared;
}

static void check(int kernel, const uint32_t *constants, uint32_t count, uint64_t most) {
  const uint64_t bytes = shared_bytes(&vulkan_modules[kernel], constants, count);
  if (bytes > most)
    fail_msg("%s takes %llu bytes, not %llu at most", vulkan_modules[kernel].name, (unsigned long long)bytes,
             (unsigned long long)most);
}

static bool is_product(int kernel) {
  return kernel >= VULKAN_KERNEL_MATRIX_F32 && kernel <= VULKAN_KERNEL_MATRIX_I8_DOT;
}
static bool is_int8(int kernel) { return kernel == VULKAN_KERNEL_MATRIX_I8 || kernel == VULKAN_KERNEL_MATRIX_I8_DOT; }
static bool is_units(int kernel) { return kernel >= VULKAN_KERNEL_UNITS_F16 && kernel <= VULKAN_KERNEL_UNITS_Q4_AT; }

/* Sizes that are known, so that the reader is not blind. */
static void test_reader(void **state) {
  (void)state;
  assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_ACT], NULL, 0), 0);
  assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_READ], NULL, 0), 256 * 4);
  static const uint32_t large[] = {16, 4, 8}, little[] = {16, 2, 4};
  assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_MATRIX_F32], large, 3), 18432);
  assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_MATRIX_F32], little, 3), 9216);
  assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_HALF_Q4], little, 3), 13444);
  assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_HALF_Q4], large, 3), 22660);
}

static void test_products(void **state) {
  (void)state;
  for (int kernel = VULKAN_KERNEL_MATRIX_F32; kernel <= VULKAN_KERNEL_MATRIX_I8_DOT; kernel++)
    for (uint32_t rows = 8; rows <= 16; rows += 8)
      for (uint32_t w = 1; w <= 4; w *= 2) {
        check(kernel, (const uint32_t[]){rows, w, 8}, 3, MOST_SHARED);
        if (w <= 2 && (rows == 8 || !is_int8(kernel))) check(kernel, (const uint32_t[]){rows, w, 4}, 3, LEAST_SHARED);
      }
}

static void test_attend(void **state) {
  (void)state;
  DflashModel model = {.geometry = {.heads = 28, .kv_heads = 4}};
  for (int64_t head_dim = 2; head_dim <= 256; head_dim += 2)
    for (uint64_t shared = LEAST_SHARED; shared <= 65536; shared *= 2)
      for (int64_t rows = 2; rows <= 64; rows *= 2) {
        uint32_t constants[VULKAN_ATTEND_CONSTANTS];
        model.geometry.head_dim = head_dim;
        model.device.traits.shared_bytes = shared;
        model.device.traits.max_threads = 256;
        vulkan_attend_constants(&model, rows, constants);
        check(VULKAN_KERNEL_ATTEND, constants, VULKAN_ATTEND_CONSTANTS, shared < 49152 ? shared : 49152);
      }
}

/* Where attention runs on matrix units, there is room for it. */
static void test_attend_units(void **state) {
  (void)state;
  static const int64_t WIDTHS[] = {32, 64, 128, 32, 64, 128};
  DflashModel model = {.units_fit = true, .options = {.units = true, .attention = true}};
  model.geometry.heads = model.geometry.kv_heads = 1;
  model.device.traits = (VulkanTraits){.coop_f16 = 8, .max_threads = 256};
  uint32_t constants[VULKAN_MAX_CONSTANTS], count;
  for (size_t i = 0; i < sizeof WIDTHS / sizeof *WIDTHS; i++) {
    model.geometry.head_dim = WIDTHS[i];
    model.profile = i < 3 ? DFLASH_PROFILE_F16 : DFLASH_PROFILE_EXACT;
    model.device.traits.shared_bytes = 1024;
    while (!vulkan_attend_on_units(&model)) model.device.traits.shared_bytes++;
    assert_int_equal(vulkan_attend_kernel(&model, 8, constants, &count), VULKAN_KERNEL_ATTEND_UNITS);
    assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_ATTEND_UNITS], constants, count),
                     model.device.traits.shared_bytes);
  }
  model.geometry.head_dim = 96;
  assert_false(vulkan_attend_on_units(&model));
}

static void test_select(void **state) {
  (void)state;
  assert_int_equal(shared_bytes(&vulkan_modules[VULKAN_KERNEL_TOP], (const uint32_t[]){256}, 1), 7320);
  for (uint32_t threads = 128; threads <= 512; threads *= 2) {
    check(VULKAN_KERNEL_TOP, &threads, 1, LEAST_SHARED);
    check(VULKAN_KERNEL_PAIRS, &threads, 1, LEAST_SHARED);
  }
}

/* What is said to be taken on matrix units is taken, and what is chosen fits. */
static void test_units(void **state) {
  (void)state;
  static const int32_t STORAGES[] = {DFLASH_STORAGE_Q4TP, DFLASH_STORAGE_Q8_2F, DFLASH_STORAGE_F16};
  static const int32_t PROFILES[] = {DFLASH_PROFILE_EXACT, DFLASH_PROFILE_F16, DFLASH_PROFILE_I8};
  static DflashModel model;
  for (int i = 0; i < 3; i++)
    for (uint32_t cut = 0; cut < 8; cut++) {
      const VulkanMatrix matrix = {.storage = STORAGES[i]};
      model.device.traits.addresses = cut >= 4;
      model.profile = PROFILES[(i + cut) % 3];
      VulkanUnitsTile tile = vulkan_units_tile(&model, &matrix, cut % 2 ? 8 : 16);
      if (cut % 4 >= 2) tile.threads = 64, tile.tiles = 3 - tile.tiles, tile.x_way = tile.x_way ^ VULKAN_X_SHARED;
      const uint64_t said = vulkan_units_shared(&tile, matrix.storage);
      const int kernel = vulkan_units_kernel(&model, &matrix);
      uint32_t constants[VULKAN_UNITS_CONSTANTS];
      vulkan_units_constants(&tile, constants);
      assert_int_equal(shared_bytes(&vulkan_modules[kernel], constants, VULKAN_UNITS_CONSTANTS), said);
    }
}

/* Where a kernel prepares what it makes, there is room for it. */
static void test_fragments(void **state) {
  (void)state;
  static const int32_t STAGES[] = {DFLASH_STAGE_ATTN_NORM, DFLASH_STAGE_MLP_NORM, DFLASH_STAGE_ATTN_CONV_IN,
                                   DFLASH_STAGE_ATTN_MIX, DFLASH_STAGE_MLP_ACT};
  const VulkanMatrix matrix = {.storage = DFLASH_STORAGE_F16, .rows = 64, .cols = 64, .pieces = 4};
  VulkanLayer layer = {.attn_kernel = matrix, .q = matrix, .o = matrix, .mlp_kernel = matrix, .down = matrix};
  DflashModel model = {.options = {.join = true}, .layers = &layer, .geometry = {.heads = 2, .head_dim = 64}};
  VulkanTraits *traits = &model.device.traits;
  traits->max_storage_buffers = VULKAN_MAX_BINDINGS;
  traits->max_groups[0] = UINT16_MAX;
  int prepared = 0;
  for (int64_t width = 2; width < 10000; width += 254)
    for (traits->shared_bytes = LEAST_SHARED; traits->shared_bytes <= MOST_SHARED; traits->shared_bytes += 4096)
      for (traits->max_threads = 256; traits->max_threads <= 1024; traits->max_threads *= 2)
        for (size_t i = 0; i < sizeof STAGES / sizeof *STAGES; i++) {
          model.geometry.hidden = model.geometry.intermediate = width;
          const VulkanMaker maker = vulkan_maker(&model, STAGES[i], 0);
          prepared += maker.forms[0] != NULL;
          if (maker.forms[0]) check(maker.kernel, maker.constants, maker.count, traits->shared_bytes);
        }
  assert_in_range(prepared, 2000, 3000);
}

/* Kernels whose constants say nothing of it. */
static void test_others(void **state) {
  (void)state;
  for (int kernel = 0; kernel < VULKAN_KERNEL_COUNT; kernel++)
    if (!is_product(kernel) && !is_units(kernel) && kernel != VULKAN_KERNEL_ATTEND &&
        kernel != VULKAN_KERNEL_ATTEND_UNITS)
      check(kernel, NULL, 0, LEAST_SHARED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_reader), cmocka_unit_test(test_products),
                                     cmocka_unit_test(test_attend), cmocka_unit_test(test_attend_units),
                                     cmocka_unit_test(test_select), cmocka_unit_test(test_units),
                                     cmocka_unit_test(test_others), cmocka_unit_test(test_fragments)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
