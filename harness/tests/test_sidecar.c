#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cmf_image.h"
#include "fixture_h5.h"
#include "model/cmf.h"

#define FIXTURE DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf"
#define GOLDEN DFLASH_GOLDEN_FOLDER "/sidecar-rewind.h5"
#define WRITTEN DFLASH_SCRATCH_FOLDER "/sidecar-written.dflash.cmf"

static void assert_opens(const char *path, DflashSidecar *sidecar) {
  DflashError error = {0};
  if (dflash_sidecar_open(path, sidecar, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static void test_import_equals_golden(void **state) {
  (void)state;
  DflashSidecar sidecar;
  assert_opens(FIXTURE, &sidecar);
  fixture_compare_geometry(GOLDEN, &sidecar.geometry, sidecar.set.weights.inv_freq);
  fixture_compare_weights(GOLDEN, &sidecar.geometry, &sidecar.set);
  assert_null(sidecar.set.weights.head.data);
  assert_string_equal(sidecar.trunk_hash64, "00c0ffee00c0ffee");
  dflash_sidecar_close(&sidecar);
}

static void test_router_equals_golden(void **state) {
  (void)state;
  DflashSidecar sidecar;
  assert_opens(FIXTURE, &sidecar);
  assert_true(sidecar.router.present);
  hid_t file = H5Fopen(GOLDEN, H5F_ACC_RDONLY, H5P_DEFAULT);
  const DflashSubspace *subspaces[2] = {&sidecar.router.block, &sidecar.router.chain};
  const char *paths[2][2] = {{"/router/block/mean", "/router/block/basis"},
                             {"/router/chain/mean", "/router/chain/basis"}};
  size_t bytes, row_bytes;
  for (int i = 0; i < 2; i++) {
    void *mean = fixture_read(file, paths[i][0], &bytes);
    assert_int_equal(bytes, 2 * (size_t)sidecar.geometry.hidden);
    assert_memory_equal(mean, subspaces[i]->mean, bytes);
    void *basis = fixture_read(file, paths[i][1], &bytes);
    assert_int_equal(bytes, 2 * (size_t)(sidecar.geometry.hidden * subspaces[i]->rank));
    assert_memory_equal(basis, subspaces[i]->basis, bytes);
    free(basis);
    free(mean);
  }
  float *rows = fixture_read(file, "/router/rows", &row_bytes);
  double *margins = fixture_read(file, "/router/margin", &bytes);
  assert_int_equal(row_bytes / sizeof *rows, bytes / sizeof *margins * (size_t)sidecar.geometry.hidden);
  for (size_t i = 0; i < bytes / sizeof *margins; i++) {
    double margin = dflash_router_margin(&sidecar.router, rows + i * (size_t)sidecar.geometry.hidden);
    assert_true(fabs(margin - margins[i]) <= 1e-6 * fabs(margins[i]));
  }
  free(margins);
  free(rows);
  H5Fclose(file);
  dflash_sidecar_close(&sidecar);
}

static void test_rewriting_gives_the_same_file(void **state) {
  (void)state;
  DflashSidecar sidecar;
  DflashMapping first, second;
  assert_opens(FIXTURE, &sidecar);
  assert_int_equal(dflash_sidecar_write(WRITTEN, &sidecar.geometry, &sidecar.set.weights, NULL, sidecar.header, NULL),
                   DFLASH_OK);
  dflash_sidecar_close(&sidecar);
  assert_int_equal(dflash_map_file(FIXTURE, &first, NULL), DFLASH_OK);
  assert_int_equal(dflash_map_file(WRITTEN, &second, NULL), DFLASH_OK);
  assert_int_equal(first.size, second.size);
  assert_memory_equal(first.data, second.data, first.size);
  dflash_unmap_file(&first);
  dflash_unmap_file(&second);
}

static void test_made_header_opens_to_the_same_weights_and_router(void **state) {
  (void)state;
  DflashSidecar sidecar, again;
  assert_opens(FIXTURE, &sidecar);
  assert_int_equal(dflash_sidecar_write(WRITTEN, &sidecar.geometry, &sidecar.set.weights, &sidecar.router, NULL, NULL),
                   DFLASH_OK);
  assert_opens(WRITTEN, &again);
  assert_true(dflash_geometry_equal(&sidecar.geometry, &again.geometry));
  fixture_compare_weights(GOLDEN, &again.geometry, &again.set);
  assert_true(again.router.present);
  assert_int_equal(again.router.chain.rank, sidecar.router.chain.rank);
  assert_int_equal(again.router.chain.phi_layer, sidecar.router.chain.phi_layer);
  size_t bytes = 2 * (size_t)(sidecar.geometry.hidden * sidecar.router.chain.rank);
  assert_memory_equal(again.router.chain.basis, sidecar.router.chain.basis, bytes);
  assert_string_equal(again.trunk_hash64, "");
  dflash_sidecar_close(&again);
  dflash_sidecar_close(&sidecar);
}

static void test_written_hashes_are_the_data_s(void **state) {
  (void)state;
  DflashSidecar sidecar;
  DflashMapping file;
  DflashCmf cmf;
  assert_opens(FIXTURE, &sidecar);
  assert_int_equal(dflash_sidecar_write(WRITTEN, &sidecar.geometry, &sidecar.set.weights, NULL, NULL, NULL), DFLASH_OK);
  assert_int_equal(dflash_map_file(WRITTEN, &file, NULL), DFLASH_OK);
  assert_int_equal(dflash_cmf_parse(file.data, file.size, &cmf, NULL), DFLASH_OK);
  assert_int_equal(cmf.count, dflash_weight_count(&sidecar.geometry));
  assert_int_equal(cmf.header_bytes, get_u64(file.data + 24));
  for (uint64_t i = 0; i < cmf.count; i++) {
    const DflashCmfRecord *record = &cmf.records[i];
    assert_int_equal(record->offset % 64, 0);
    assert_true(record->hash != 0);
    assert_true(record->hash == dflash_hash64(cmf.data + record->offset, record->bytes));
  }
  assert_true(get_u64(file.data + 112) == dflash_hash64(cmf.header, cmf.header_bytes));
  assert_true(get_u64(file.data + 120) == dflash_hash64(file.data + get_u64(file.data + 32), get_u64(file.data + 40)));
  dflash_cmf_close(&cmf);
  dflash_unmap_file(&file);
  dflash_sidecar_close(&sidecar);
}

static void assert_not_written(const DflashGeometry *geometry, const DflashWeights *weights, const char *header,
                               const char *expected) {
  DflashError error = {0};
  remove(WRITTEN);
  assert_int_not_equal(dflash_sidecar_write(WRITTEN, geometry, weights, NULL, header, &error), DFLASH_OK);
  if (strstr(error.message, expected) == NULL) fail_msg("%s", error.message);
  FILE *file = fopen(WRITTEN, "rb");
  assert_null(file);
}

static void test_writer_refuses(void **state) {
  (void)state;
  Image image = image_sidecar(image_header);
  DflashSidecar sidecar;
  assert_int_equal(dflash_sidecar_parse(image.bytes, image.size, &sidecar, NULL), DFLASH_OK);
  DflashWeights *weights = &sidecar.set.weights;
  DflashGeometry other = sidecar.geometry;
  other.eps = 1e-5;
  assert_not_written(&other, weights, image_header, "is not the weights' geometry");
  assert_not_written(&sidecar.geometry, weights, "{}", "arch.arch_name is absent");
  other.block = 1;
  assert_not_written(&other, weights, NULL, "block");
  DflashWeights damaged = *weights;
  damaged.norm.data = NULL;
  assert_not_written(&sidecar.geometry, &damaged, NULL, "norm.weight has no data");
  damaged.norm = weights->norm;
  damaged.norm.storage = DFLASH_STORAGE_F16;
  assert_not_written(&sidecar.geometry, &damaged, NULL, "norm.weight");
  float values[32] = {[3] = NAN};
  damaged.norm = weights->norm;
  damaged.norm.data = values;
  assert_not_written(&sidecar.geometry, &damaged, NULL, "norm.weight");
  DflashError error;
  assert_int_equal(dflash_sidecar_write("/nonexistent/x.cmf", &sidecar.geometry, weights, NULL, NULL, &error),
                   DFLASH_IO);
  dflash_sidecar_close(&sidecar);
  image_free(&image);
}

static void test_composed_image_opens(void **state) {
  (void)state;
  Image image = image_sidecar(image_header);
  DflashSidecar sidecar;
  DflashGeometry geometry = image_geometry();
  DflashError error = {0};
  if (dflash_sidecar_parse(image.bytes, image.size, &sidecar, &error) != DFLASH_OK) fail_msg("%s", error.message);
  assert_true(dflash_geometry_equal(&geometry, &sidecar.geometry));
  assert_false(sidecar.router.present);
  for (int i = 0; i < image.count; i++)
    assert_ptr_equal(dflash_weight_at(&geometry, &sidecar.set, i)->data, image_tensor_data(&image, i));
  assert_string_equal(sidecar.header, image_header);
  assert_string_equal(sidecar.trunk_hash64, "00c0ffee");
  dflash_sidecar_close(&sidecar);
  dflash_sidecar_close(&sidecar); /* a second close finds nothing */
  assert_int_equal(dflash_sidecar_parse(image.bytes + 1, image.size - 1, &sidecar, NULL), DFLASH_INVALID_ARGUMENT);
  image_free(&image);
}

static void test_paths_that_are_no_sidecar(void **state) {
  (void)state;
  const char *paths[] = {"/nonexistent", DFLASH_GOLDEN_FOLDER, "/dev/null", GOLDEN};
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    DflashSidecar sidecar;
    DflashError error = {0};
    assert_int_not_equal(dflash_sidecar_open(paths[i], &sidecar, &error), DFLASH_OK);
    assert_non_null(strstr(error.message, paths[i]));
    dflash_sidecar_close(&sidecar);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_import_equals_golden),
      cmocka_unit_test(test_router_equals_golden),
      cmocka_unit_test(test_rewriting_gives_the_same_file),
      cmocka_unit_test(test_made_header_opens_to_the_same_weights_and_router),
      cmocka_unit_test(test_written_hashes_are_the_data_s),
      cmocka_unit_test(test_writer_refuses),
      cmocka_unit_test(test_composed_image_opens),
      cmocka_unit_test(test_paths_that_are_no_sidecar),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
