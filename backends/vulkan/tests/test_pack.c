/* Weights on the device, read back and decoded as kernel.h and units.h say, against their exact stored values. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "codebook.h"
#include "draw.h"
#include "model/storage.h"
#include "pack.h"
#include "units.h"

static DflashModel model;

/* By --wrap: whether matrices are opened in fragments. */
static bool in_fragments;
bool __wrap_vulkan_units_take(const DflashModel *m, int32_t storage);
bool __wrap_vulkan_units_take(const DflashModel *m, int32_t storage) {
  (void)m;
  return in_fragments && storage != DFLASH_STORAGE_F32 && storage != DFLASH_STORAGE_BF16;
}

/* ---- stored matrices of any bits ---- */

typedef struct Stored {
  DflashTensor tensor;
  unsigned char *data;
} Stored;

static void put_f16(unsigned char *at, int64_t index, uint16_t bits) { memcpy(at + 2 * index, &bits, sizeof bits); }

/* Scales that a reader may get wrong: denormals, the smallest, zero, negative ones, the largest. */
static uint16_t odd_f16(uint32_t draw) {
  static const uint16_t odd[] = {0x0001, 0x03ff, 0x8200, 0x0000, 0x0400, 0xc000, 0x7bff, 0x3c00};
  return draw % 3 == 0 ? odd[draw / 3 % 8] : (uint16_t)(draw >> 8 & 0x7bff);
}

/* An element: any finite number, or a byte of two nibbles or of an int8, each value in turn. */
static void fill(Stored *s, DflashRandom random) {
  const int32_t storage = s->tensor.storage;
  for (uint64_t i = 0; i < s->tensor.bytes; i++) s->data[i] = (unsigned char)(dflash_random_u32(random, i) >> 7);
  const int64_t rows = s->tensor.shape[0], cols = s->tensor.shape[1];
  if (storage == DFLASH_STORAGE_F16)
    for (int64_t i = 0; i < rows * cols; i++) put_f16(s->data, i, odd_f16(dflash_random_u32(random, (uint64_t)i)));
  if (storage == DFLASH_STORAGE_F32 || storage == DFLASH_STORAGE_BF16) {
    const int size = storage == DFLASH_STORAGE_F32 ? 4 : 2;
    for (int64_t i = 0; i < rows * cols; i++) s->data[size * i + size - 1] &= 0xbf; /* no infinity, no NaN */
  }
  if (storage == DFLASH_STORAGE_Q8_2F) {
    s->data[0] = 0x80;
    for (int64_t i = 0; i < rows + cols; i++)
      put_f16(s->data + rows * cols, i, odd_f16(dflash_random_u32(random, (uint64_t)i)));
  }
  if (storage == DFLASH_STORAGE_Q4TP) {
    s->data[0] = 0xf0;
    for (int64_t row = 0; row < rows; row++) {
      const uint32_t draw = dflash_random_u32(random, (uint64_t)row);
      put_f16(s->data + rows * cols / 2, 2 * row, (uint16_t)(0xc000 + (draw & 0x0fff))); /* lo from -8 to -2 */
      put_f16(s->data + rows * cols / 2, 2 * row + 1, (uint16_t)(draw >> 16 & 0x37ff));  /* step below 1/2 */
    }
  }
}

static Stored store(int32_t storage, int64_t rows, int64_t cols, uint64_t seed) {
  DflashError error = {0};
  Stored s = {.tensor = {.storage = storage, .rank = 2, .shape = {rows, cols}}};
  test_ok(dflash_storage_bytes(storage, rows, cols, &s.tensor.bytes, &error), &error);
  s.data = test_memory((size_t)s.tensor.bytes, 1);
  fill(&s, dflash_random_stream(seed, "stored"));
  s.tensor.data = s.data;
  test_ok(dflash_tensor_check(&s.tensor, "a test", &error), &error);
  return s;
}

/* ---- what the device holds ---- */

static void *download(VulkanRange range, uint64_t bytes) {
  DflashError error = {0};
  assert_true(bytes <= range.bytes);
  void *data = test_memory((size_t)bytes, 1);
  test_ok(vulkan_download(&model.device, range, data, bytes, &error), &error);
  return data;
}

typedef struct Part {
  unsigned char *weights;
  float *scales, *columns;
  uint32_t *codes;
} Part;

static double rung_of(const Part *p, int64_t row, uint64_t code) {
  float rung = p->scales[2 * row];
  for (uint64_t c = code; c > 0; c--) rung *= p->scales[2 * row + 1];
  return (double)rung;
}

static double decode_q4(const VulkanMatrix *m, const Part *p, int64_t row, int64_t col) {
  const uint32_t *codes = p->codes + row * m->code_pitch;
  const uint64_t bit = (uint64_t)col / 32 * 5;
  uint64_t window = codes[bit / 32];
  if (bit / 32 + 1 < m->code_pitch) window |= (uint64_t)codes[bit / 32 + 1] << 32;
  const unsigned char byte = p->weights[row * m->pitch * 16 + col / 2];
  return ((col % 2 ? byte >> 4 : byte & 15) - 8) * rung_of(p, row, window >> bit % 32 & 31);
}

static double decode(const VulkanMatrix *m, const Part *p, int64_t row, int64_t col) {
  const unsigned char *weights = p->weights + row * m->pitch * 16;
  uint16_t half;
  float wide;
  switch (m->storage) {
  case DFLASH_STORAGE_F32:
    memcpy(&wide, weights + 4 * col, sizeof wide);
    return (double)wide;
  case DFLASH_STORAGE_Q8_2F:
    return (signed char)weights[col] * (double)p->scales[row] * (double)p->columns[col];
  case DFLASH_STORAGE_Q4TP:
    return decode_q4(m, p, row, col);
  default:
    memcpy(&half, weights + 2 * col, sizeof half);
    return (double)(m->storage == DFLASH_STORAGE_F16 ? dflash_f16_value(half) : dflash_bf16_value(half));
  }
}

/* ---- fragments ---- */

typedef struct Holder {
  uint32_t thread, n;
} Holder;

static Holder holders[16][16]; /* of a fragment's elements */

static void find_holders(void) {
  for (uint32_t i = 0; i < 32; i++)
    for (uint32_t n = 0; n < 8; n++) {
      const VulkanPlace place = vulkan_units_w(i, n);
      holders[place.row][place.col] = (Holder){i, n};
    }
}

/* An element as it stands in a word: a nibble, a byte or an f16. */
static uint32_t held_bits(const VulkanMatrix *m, const Part *p, int64_t row, int64_t col) {
  static const uint32_t nibbles[] = {0, 2, 1, 3, 4, 6, 5, 7}, bytes[] = {0, 2, 1, 3, 4, 6, 5, 7};
  const int64_t piece = vulkan_units_piece(m->storage), fragment = col % piece / 16;
  const Holder holder = holders[row % 16][col % 16];
  uint32_t words[4], at = 0;
  memcpy(words, p->weights + ((row / 16 * m->pieces + col / piece) * 32 + holder.thread) * 16, sizeof words);
  switch (m->storage) {
  case DFLASH_STORAGE_Q4TP:
    while (nibbles[at] != holder.n) at++;
    return words[fragment / 2 * 2 + at / 4] >> (at % 4 * 8 + fragment % 2 * 4) & 15;
  case DFLASH_STORAGE_Q8_2F:
    while (bytes[at] != holder.n) at++;
    return words[2 * fragment + at / 4] >> at % 4 * 8 & 255;
  default:
    return words[holder.n / 2] >> holder.n % 2 * 16 & 0xffff;
  }
}

static uint32_t held_code(const VulkanMatrix *m, const Part *p, int64_t row, int64_t group) {
  const uint32_t word = p->codes[(row / 16 * m->pieces / 4 + group / 8) * 32 + row % 8 * 4 + group % 4];
  return word >> (group % 8 / 4 * 16 + row % 16 / 8 * 8) & 255;
}

static double decode_fragment(const VulkanMatrix *m, const Part *p, int64_t row, int64_t col) {
  const uint32_t bits = held_bits(m, p, row, col);
  switch (m->storage) {
  case DFLASH_STORAGE_Q4TP:
    return ((int)(bits ^ 8) - 8) * rung_of(p, row, held_code(m, p, row, col / 32));
  case DFLASH_STORAGE_Q8_2F:
    return (signed char)bits * (double)p->scales[row] * (double)p->columns[col];
  default:
    return (double)dflash_f16_value((uint16_t)bits);
  }
}

/* What tiles and pieces have beyond the matrix is 0. */
static void check_filling(const VulkanMatrix *m, const VulkanPart *part, const Part *p) {
  const int64_t rows = vulkan_units_tiles(part->rows) * 16, groups = vulkan_units_groups(m->storage, m->cols);
  const int64_t used = m->storage == DFLASH_STORAGE_Q4TP ? m->cols / 32 : groups;
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t col = row < part->rows ? m->cols : 0; col < groups * 32; col++)
      assert_int_equal(held_bits(m, p, row, col), 0);
    for (int64_t group = row < part->rows ? used : 0; p->codes && group < groups; group++)
      assert_int_equal(held_code(m, p, row, group), 0);
  }
}

/* ---- matrices ---- */

/* What a row has beyond its elements is 0. */
static void check_padding(const VulkanMatrix *m, const VulkanPart *part, const Part *p) {
  static const int64_t bits[] = {[DFLASH_STORAGE_F32] = 32,
                                 [DFLASH_STORAGE_F16] = 16,
                                 [DFLASH_STORAGE_BF16] = 16,
                                 [DFLASH_STORAGE_Q8_2F] = 8,
                                 [DFLASH_STORAGE_Q4TP] = 4};
  for (int64_t row = 0; row < part->rows; row++)
    for (int64_t i = m->cols * bits[m->storage] / 8; i < m->pitch * 16; i++)
      assert_int_equal(p->weights[row * m->pitch * 16 + i], 0);
}

static void check_part(const VulkanMatrix *m, const VulkanPart *part, const DflashTensor *tensor) {
  const bool q4 = m->storage == DFLASH_STORAGE_Q4TP, q8 = m->storage == DFLASH_STORAGE_Q8_2F;
  const bool fragments = m->pieces > 0;
  const VulkanForm form = fragments ? vulkan_units_form(m->storage, m->cols) : vulkan_form(m->storage, m->cols);
  const uint64_t rows = (uint64_t)part->rows, filled = fragments ? (rows + 15) / 16 * 16 : rows;
  Part p = {.weights = download(part->weights, filled * form.weight_bytes)};
  if (q4 || q8) p.scales = download(part->scales, rows * form.scale_bytes);
  if (q4) p.codes = download(part->codes, filled * form.code_bytes);
  if (q8) p.columns = download(m->columns, (uint64_t)m->cols * 4);
  for (int64_t row = 0; row < part->rows; row++)
    for (int64_t col = 0; col < m->cols; col++) {
      const double got = fragments ? decode_fragment(m, &p, row, col) : decode(m, &p, row, col);
      const double stored = dflash_tensor_at(tensor, part->first + row, col);
      if (got != stored)
        fail_msg("storage %d, row %lld, column %lld: %a, stored is %a", (int)m->storage, (long long)(part->first + row),
                 (long long)col, got, stored);
    }
  if (fragments)
    check_filling(m, part, &p);
  else
    check_padding(m, part, &p);
  free(p.weights);
  free(p.scales);
  free(p.codes);
  free(p.columns);
}

static void check_matrix(int32_t storage, int64_t rows, int64_t cols, uint32_t parts) {
  DflashError error = {0};
  VulkanUpload upload;
  VulkanMatrix m;
  Stored s = store(storage, rows, cols, (uint64_t)(rows * 1000 + cols));
  test_ok(vulkan_upload_begin(&model.device, &upload, &error), &error);
  test_ok(vulkan_matrix_open(&model, &upload, &s.tensor, "a test", &m, &error), &error);
  memset(s.data, 0xff, (size_t)s.tensor.bytes); /* nothing is read later */
  test_ok(vulkan_upload_end(&model.device, &upload, &error), &error);
  fill(&s, dflash_random_stream((uint64_t)(rows * 1000 + cols), "stored"));
  const bool fragments = __wrap_vulkan_units_take(&model, storage);
  assert_int_equal(m.pieces, fragments ? vulkan_units_pieces(storage, cols) : 0);
  const VulkanForm form = fragments ? vulkan_units_form(storage, cols) : vulkan_form(storage, cols);
  assert_int_equal(m.row_bytes, form.weight_bytes + form.scale_bytes + form.code_bytes);
  int64_t first = 0;
  for (uint32_t i = 0; i < m.part_count; i++) {
    assert_int_equal(m.parts[i].first, first);
    assert_true(i + 1 == m.part_count || m.parts[i].rows % 16 == 0);
    assert_true(m.parts[i].weights.bytes <= model.device.traits.max_binding);
    check_part(&m, &m.parts[i], &s.tensor);
    first += m.parts[i].rows;
  }
  assert_int_equal(first, rows);
  assert_int_equal(m.part_count, parts);
  vulkan_matrix_close(&m);
  assert_null(m.parts);
  free(s.data);
}

static const int32_t STORAGES[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F,
                                   DFLASH_STORAGE_Q4TP};

static void test_storages(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {17, 33}, {2, 32}, {5, 96}, {33, 224}, {16, 1024}, {1, 2080}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (size_t j = 0; j < sizeof STORAGES / sizeof STORAGES[0]; j++)
      if (STORAGES[j] != DFLASH_STORAGE_Q4TP || sizes[i][1] % 32 == 0)
        check_matrix(STORAGES[j], sizes[i][0], sizes[i][1], 1);
}

/* A binding of a little more than 32 rows, and of 47: parts of 32 rows. */
static void check_parts(int32_t storage) {
  const VulkanTraits traits = model.device.traits;
  const bool fragments = __wrap_vulkan_units_take(&model, storage);
  const uint64_t row = (fragments ? vulkan_units_form(storage, 96) : vulkan_form(storage, 96)).weight_bytes;
  model.device.traits.max_binding = 32 * row;
  check_matrix(storage, 100, 96, 4);
  model.device.traits.max_binding = 48 * row - 1;
  check_matrix(storage, 64, 96, 2);
  model.device.traits = traits;
  model.device.traits.max_groups[0] = fragments ? 2 : 4; /* of 16 or 8 rows each */
  check_matrix(storage, 33, 96, 2);
  model.device.traits = traits;
}

static void test_parts(void **state) {
  (void)state;
  for (size_t j = 0; j < sizeof STORAGES / sizeof STORAGES[0]; j++) check_parts(STORAGES[j]);
}

/* Whether a tile's rows and a piece's columns are all there or not. */
static void test_fragments(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{1, 1},    {3, 7},   {17, 33},  {2, 32},   {5, 96},   {33, 224}, {16, 1024},
                                     {1, 2080}, {16, 64}, {15, 128}, {32, 256}, {31, 288}, {18, 130}};
  in_fragments = true;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (size_t j = 0; j < sizeof STORAGES / sizeof STORAGES[0]; j++)
      if (STORAGES[j] != DFLASH_STORAGE_Q4TP || sizes[i][1] % 32 == 0)
        check_matrix(STORAGES[j], sizes[i][0], sizes[i][1], 1);
  test_parts(state);
  in_fragments = false;
}

/* More than the staging buffer takes at once. */
static void test_many_tiles(void **state) {
  (void)state;
  in_fragments = true;
  check_matrix(DFLASH_STORAGE_F16, 1030, 8320, 1);
  in_fragments = false;
}

/* A tile goes through the staging buffer whole. */
static void test_long_tile(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanMatrix m;
  Stored s = store(DFLASH_STORAGE_F16, 1, VULKAN_STAGING_BYTES / 32 + 1, 1);
  in_fragments = true;
  assert_int_equal(vulkan_matrix_open(&model, NULL, &s.tensor, "a test", &m, &error), DFLASH_UNSUPPORTED);
  in_fragments = false;
  assert_non_null(strstr(error.message, "1048576"));
  assert_null(m.parts);
  free(s.data);
}

static void test_too_long(void **state) {
  (void)state;
  const VulkanTraits traits = model.device.traits;
  DflashError error = {0};
  VulkanMatrix m;
  Stored s = store(DFLASH_STORAGE_F32, 20, 64, 1);
  model.device.traits.max_binding = 16 * 256 - 1;
  assert_int_equal(vulkan_matrix_open(&model, NULL, &s.tensor, "a test", &m, &error), DFLASH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "256"));
  assert_non_null(strstr(error.message, "4095"));
  assert_null(m.parts);
  model.device.traits = traits;
  free(s.data);
}

static void check_codebook(int32_t storage, int64_t rank) {
  enum { VOCAB = 300 };
  DflashError error = {0};
  const VulkanTraits traits = model.device.traits;
  const uint64_t row = (uint64_t)rank * (storage == DFLASH_STORAGE_F32 ? 4 : 2);
  VulkanUpload upload;
  VulkanMatrix m;
  Stored s = store(storage, VOCAB, rank, (uint64_t)rank);
  model.device.traits.max_binding = 150 * row; /* parts of 128 tokens */
  test_ok(vulkan_upload_begin(&model.device, &upload, &error), &error);
  test_ok(vulkan_codebook_open(&model, &upload, &s.tensor, "a test", &m, &error), &error);
  test_ok(vulkan_upload_end(&model.device, &upload, &error), &error);
  assert_int_equal(m.part_count, 3);
  for (uint32_t i = 0; i < m.part_count; i++) {
    assert_int_equal(m.parts[i].first, 128 * i);
    unsigned char *data = download(m.parts[i].weights, (uint64_t)m.parts[i].rows * row);
    assert_memory_equal(data, s.data + 128 * i * row, (size_t)((uint64_t)m.parts[i].rows * row));
    assert_true(m.parts[i].weights.bytes % 4 == 0);
    free(data);
  }
  assert_int_equal(m.parts[2].rows, VOCAB - 256);
  vulkan_matrix_close(&m);
  model.device.traits = traits;
  free(s.data);
}

static void test_codebooks(void **state) {
  (void)state;
  static const int64_t ranks[] = {1, 5, 8, 33};
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
    check_codebook(DFLASH_STORAGE_F16, ranks[i]);
    check_codebook(DFLASH_STORAGE_BF16, ranks[i]);
    check_codebook(DFLASH_STORAGE_F32, ranks[i]);
  }
}

/* Every f16, and the ladders of every finite one. */
static void test_halves(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    const float got = vulkan_f16_value((uint16_t)bits), expected = dflash_f16_value((uint16_t)bits);
    if ((bits & 0x7fff) > 0x7c00)
      assert_true(got != got);
    else
      assert_memory_equal(&got, &expected, sizeof got);
  }
}

static void test_ladders(void **state) {
  (void)state;
  unsigned char data[16 + 4 + 1] = {0};
  const DflashTensor tensor = {
      .storage = DFLASH_STORAGE_Q4TP, .rank = 2, .shape = {1, 32}, .bytes = sizeof data, .data = data};
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float pair[2];
    if ((bits & 0x7c00) == 0x7c00) continue;
    put_f16(data + 16, 0, (uint16_t)bits);
    put_f16(data + 16, 1, (uint16_t)(bits ^ 0x8000));
    vulkan_pack_scales(&tensor, 0, 1, pair);
    const float expected[2] = {dflash_exp2_f32(dflash_f16_value((uint16_t)bits)),
                               dflash_exp2_f32(dflash_f16_value((uint16_t)(bits ^ 0x8000)))};
    assert_memory_equal(pair, expected, sizeof pair);
  }
}

int main(void) {
  test_device_open(&model.device);
  find_holders();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_storages),   cmocka_unit_test(test_parts),     cmocka_unit_test(test_fragments),
      cmocka_unit_test(test_many_tiles), cmocka_unit_test(test_long_tile), cmocka_unit_test(test_too_long),
      cmocka_unit_test(test_codebooks),  cmocka_unit_test(test_halves),    cmocka_unit_test(test_ladders)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  vulkan_arena_close(&model.device, &model.arena);
  return test_device_close(&model.device) ? failed : 1;
}
