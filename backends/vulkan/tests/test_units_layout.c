/* Where fragments' elements stand, and the probe that asks a device for it: on matrix units emulated, as they are and
 * with elements elsewhere. */
#include "fixture.h"

#include <string.h>

#include "probe_emulated.h"
#include "probe_products.h"
#include "probe_w.h"
#include "probe_x.h"
#include "units.h"

enum { LANES = 32, TILE_ROWS = 16, DEPTH = 16, X_ROWS = 8 };

/* By --wrap: the kernels are these. */
extern const VulkanModule __real_vulkan_modules[VULKAN_KERNEL_COUNT];
extern VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];
VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];

static VulkanDevice device;

typedef VulkanPlace PlaceOf(uint32_t thread, uint32_t n);

static void check_places(PlaceOf *place_of, uint32_t held, uint32_t rows, uint32_t cols) {
  bool seen[TILE_ROWS][DEPTH] = {{false}};
  assert_int_equal(LANES * held, rows * cols);
  for (uint32_t i = 0; i < LANES; i++)
    for (uint32_t n = 0; n < held; n++) {
      const VulkanPlace place = place_of(i, n);
      assert_true(place.row < rows && place.col < cols);
      assert_false(seen[place.row][place.col]);
      seen[place.row][place.col] = true;
    }
}

static void test_places_once(void **state) {
  (void)state;
  check_places(vulkan_units_w, 8, TILE_ROWS, DEPTH);
  check_places(vulkan_units_x, 4, X_ROWS, DEPTH);
  check_places(vulkan_units_y, 4, TILE_ROWS, X_ROWS);
}

/* Words of two elements hold columns 2 j and 2 j + 1 of one row: packing and preparing count on it. */
static void check_pairs_of(PlaceOf *place_of, uint32_t held) {
  for (uint32_t i = 0; i < LANES; i++)
    for (uint32_t n = 0; n < held; n += 2) {
      const VulkanPlace first = place_of(i, n), second = place_of(i, n + 1);
      assert_int_equal(first.col % 2, 0);
      assert_int_equal(second.row, first.row);
      assert_int_equal(second.col, first.col + 1);
    }
}

static void test_columns_in_pairs(void **state) {
  (void)state;
  check_pairs_of(vulkan_units_w, 8);
  check_pairs_of(vulkan_units_x, 4);
}

static void test_pairs(void **state) {
  (void)state;
  uint32_t pairs[VULKAN_UNITS_PAIRS];
  memset(pairs, 0xff, sizeof pairs);
  vulkan_units_pairs(pairs);
  for (uint32_t j = 0; j < DEPTH / 2; j++)
    for (uint32_t row = 0; row < X_ROWS; row++) {
      const uint32_t pair = pairs[8 * j + row];
      assert_true(pair < VULKAN_UNITS_PAIRS);
      const VulkanPlace place = vulkan_units_x(pair / 2, pair % 2 * 2);
      assert_int_equal(place.row, row);
      assert_int_equal(place.col, 2 * j);
    }
}

/* As units.comp has them written out. */
static void test_products(void **state) {
  (void)state;
  for (uint32_t i = 0; i < LANES; i++)
    for (uint32_t n = 0; n < 4; n++) {
      const VulkanPlace place = vulkan_units_y(i, n);
      assert_int_equal(place.row, i / 4 + 8 * (n / 2));
      assert_int_equal(place.col, i % 4 * 2 + n % 2);
    }
}

static void test_sizes(void **state) {
  (void)state;
  static const struct {
    int32_t storage;
    int64_t piece, cols, pieces, groups;
  } cases[] = {{DFLASH_STORAGE_Q4TP, 64, 32, 4, 8},     {DFLASH_STORAGE_Q4TP, 64, 256, 4, 8},
               {DFLASH_STORAGE_Q4TP, 64, 288, 8, 16},   {DFLASH_STORAGE_Q4TP, 64, 5120, 80, 160},
               {DFLASH_STORAGE_Q8_2F, 32, 1, 8, 8},     {DFLASH_STORAGE_Q8_2F, 32, 256, 8, 8},
               {DFLASH_STORAGE_Q8_2F, 32, 257, 16, 16}, {DFLASH_STORAGE_Q8_2F, 32, 5120, 160, 160},
               {DFLASH_STORAGE_F16, 16, 1, 16, 8},      {DFLASH_STORAGE_F16, 16, 256, 16, 8},
               {DFLASH_STORAGE_F16, 16, 257, 32, 16},   {DFLASH_STORAGE_F16, 16, 25600, 1600, 800}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(vulkan_units_piece(cases[i].storage), cases[i].piece);
    assert_int_equal(vulkan_units_pieces(cases[i].storage, cases[i].cols), cases[i].pieces);
    assert_int_equal(vulkan_units_groups(cases[i].storage, cases[i].cols), cases[i].groups);
  }
  assert_int_equal(vulkan_units_tiles(1), 1);
  assert_int_equal(vulkan_units_tiles(16), 1);
  assert_int_equal(vulkan_units_tiles(17), 2);
}

static bool probe(VulkanModule module) {
  DflashError error = {0};
  VulkanPipelines pipelines = {0};
  bool fits = !module.words; /* the other way than expected */
  memcpy(__wrap_vulkan_modules, __real_vulkan_modules, sizeof __wrap_vulkan_modules);
  __wrap_vulkan_modules[VULKAN_KERNEL_UNITS_PROBE] = module;
  test_ok(vulkan_units_probe(&device, &pipelines, &fits, &error), &error);
  vulkan_pipelines_close(&device, &pipelines);
  return fits;
}

static void test_probe(void **state) {
  (void)state;
  const VulkanTraits traits = device.traits;
  device.traits.coop_f16 = 8 | 16;
  assert_true(probe((VulkanModule){"units_probe", MODULE_probe_emulated}));
  assert_false(probe((VulkanModule){"units_probe", MODULE_probe_w}));
  assert_false(probe((VulkanModule){"units_probe", MODULE_probe_x}));
  assert_false(probe((VulkanModule){"units_probe", MODULE_probe_products}));
  device.traits.coop_f16 = 16;
  assert_false(probe((VulkanModule){0}));
  device.traits = traits;
}

int main(void) {
  test_device_open(&device);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_places_once), cmocka_unit_test(test_columns_in_pairs),
                                     cmocka_unit_test(test_pairs),       cmocka_unit_test(test_products),
                                     cmocka_unit_test(test_sizes),       cmocka_unit_test(test_probe)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_device_close(&device) ? failed : 1;
}
