/* Weights of a drawn drafter: the rows of each storage. */
#include <string.h>

#include "base/error.h"
#include "golden/draw.h"
#include "golden/draw_size.h"
#include "model/storage.h"

typedef struct Draw {
  const DflashTensor *tensor;
  unsigned char *data;
  int64_t rows, cols;
  DflashDrawSize size;
  DflashRandom values, scales, columns, codes;
} Draw;

/* ---- f32, f16, bf16 ---- */

enum { GROUP = 32, SMALL_OCTAVES = 7 };

static float stressed(const Draw *d, int64_t at, float value) {
  int64_t row = at / d->cols;
  if (dflash_draw_group_is_zero(&d->size, row, at % d->cols / GROUP)) return 0.0f;
  return dflash_draw_row_is_small(&d->size, row) ? value * 0x1p-7f : value;
}

static void draw_real_rows(void *context, int64_t begin, int64_t end, int worker) {
  enum { CHUNK = 256 };
  const Draw *d = context;
  float values[CHUNK];
  (void)worker;
  for (int64_t at = begin * d->cols, stop = end * d->cols; at < stop; at += CHUNK) {
    size_t count = stop - at < CHUNK ? (size_t)(stop - at) : CHUNK;
    dflash_draw_normal(d->values, (uint64_t)at, count, d->size.deviation, values);
    for (size_t i = 0; i < count; i++) {
      float value = stressed(d, at + (int64_t)i, values[i] + d->size.mean);
      if (d->tensor->storage == DFLASH_STORAGE_F32) ((float *)(void *)d->data)[at + (int64_t)i] = value;
      if (d->tensor->storage == DFLASH_STORAGE_F16)
        ((uint16_t *)(void *)d->data)[at + (int64_t)i] = dflash_f16_round(value);
      if (d->tensor->storage == DFLASH_STORAGE_BF16)
        ((uint16_t *)(void *)d->data)[at + (int64_t)i] = dflash_bf16_round(value);
    }
  }
}

/* ---- q8_2f ---- */

/* What a stress makes of a code that deviates by 52.3. */
static int stressed_code(const Draw *d, int shift, int64_t row, int64_t col, int code) {
  if (dflash_draw_group_is_zero(&d->size, row, col / GROUP)) return 0;
  if (d->size.clustered) return (d->size.mean < 0.0f ? -100 : 100) + code / 16;
  code += shift;
  return code < -128 ? -128 : code > 127 ? 127 : code;
}

/* Half the sum of two uniform bytes about zero: -128 .. 127, deviation 52.3. One column of each row is set to -128. */
static void draw_code_row(const Draw *d, int64_t row) {
  enum { CHUNK = 512 };
  uint32_t words[CHUNK / 2];
  signed char *codes = (signed char *)d->data + row * d->cols;
  uint64_t begin = (uint64_t)row * (uint64_t)((d->cols + 1) / 2);
  int shift = dflash_draw_shift(&d->size, 52.25f);
  for (int64_t at = 0; at < d->cols; at += CHUNK) {
    int64_t count = d->cols - at < CHUNK ? d->cols - at : CHUNK;
    dflash_random_fill(d->values, begin + (uint64_t)at / 2, (size_t)(count + 1) / 2, words);
    for (int64_t i = 0; i < count; i++) {
      int half = (int)(words[i / 2] >> (16 * (i % 2))) & 0xffff;
      int code = ((half & 0xff) + (half >> 8) + 1) / 2 - 128;
      codes[at + i] = (signed char)stressed_code(d, shift, row, at + i, code);
    }
  }
  int64_t lowest = dflash_random_below(d->codes, (uint64_t)row, (uint32_t)d->cols);
  if (!d->size.clustered && !dflash_draw_group_is_zero(&d->size, row, lowest / GROUP)) codes[lowest] = -128;
}

/* scale * (0.75 .. 1.25) */
static uint16_t draw_field(DflashRandom stream, int64_t index, float scale) {
  uint32_t word = dflash_random_u32(stream, (uint64_t)index) >> 16;
  return dflash_f16_round(scale * (0.75f + (float)word * 0x1p-17f));
}

static uint16_t draw_row_scale(const Draw *d, int64_t row) {
  float size = d->size.mean < 0.0f ? -d->size.mean : d->size.mean;
  if (d->size.clustered) return dflash_f16_round(size / 100.0f);
  float scale = d->size.deviation / 52.25f;
  return draw_field(d->scales, row, dflash_draw_row_is_small(&d->size, row) ? scale * 0x1p-7f : scale);
}

static void draw_q8_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Draw *d = context;
  unsigned char *scales = d->data + d->rows * d->cols;
  (void)worker;
  for (int64_t row = begin; row < end; row++) {
    draw_code_row(d, row);
    uint16_t scale = draw_row_scale(d, row);
    memcpy(scales + 2 * row, &scale, sizeof scale);
  }
}

static void draw_q8_columns(const Draw *d) {
  unsigned char *fields = d->data + d->rows * d->cols + 2 * d->rows;
  for (int64_t col = 0; col < d->cols; col++) {
    uint16_t field = draw_field(d->columns, col, 1.0f);
    memcpy(fields + 2 * col, &field, sizeof field);
  }
}

/* ---- q4tp ---- */

/* From eight bits, a sum of 3 + 3 + 1 + 1: 0 .. 16 about 8, deviation 3.3; 16 becomes 15. */
static void fill_nibble_map(unsigned char map[256]) {
  for (int byte = 0; byte < 256; byte++) {
    int sum = (byte & 7) + ((byte >> 3) & 7) + ((byte >> 6) & 1) + ((byte >> 7) & 1);
    map[byte] = (unsigned char)(sum < 15 ? sum : 15);
  }
}

/* The map of a tensor whose mean is not zero. */
static void shift_nibble_map(const Draw *d, unsigned char map[256]) {
  int shift = dflash_draw_shift(&d->size, 3.3f);
  for (int byte = 0; byte < 256 && shift != 0; byte++) {
    int nibble = map[byte] + shift;
    map[byte] = (unsigned char)(nibble < 0 ? 0 : nibble > 15 ? 15 : nibble);
  }
}

static void draw_nibbles(const Draw *d, const unsigned char map[256], int64_t row) {
  int64_t groups = d->cols / GROUP;
  unsigned char *out = d->data + row * groups * (GROUP / 2);
  for (int64_t group = 0; group < groups; group++) {
    uint32_t words[GROUP / 4];
    if (dflash_draw_group_is_zero(&d->size, row, group)) {
      memset(out, 0x88, GROUP / 2);
      out += GROUP / 2;
      continue;
    }
    dflash_random_fill(d->values, (uint64_t)(row * groups + group) * (GROUP / 4), GROUP / 4, words);
    for (int byte = 0; byte < GROUP / 2; byte++) {
      uint32_t pair = words[byte / 2] >> (16 * (byte % 2));
      *out++ = (unsigned char)(map[pair & 0xff] | map[(pair >> 8) & 0xff] << 4);
    }
  }
}

/* Five bits a group, least significant first, as a sum of 4 + 4 + 1 bits about the ladder's middle. */
static void draw_codes(const Draw *d, unsigned char *out, int64_t row, int64_t groups) {
  memset(out, 0, (size_t)(groups * 5 + 7) / 8);
  for (int64_t group = 0; group < groups; group++) {
    uint32_t word = dflash_random_u32(d->codes, (uint64_t)(row * groups + group));
    unsigned code = (word & 15) + ((word >> 4) & 15) + ((word >> 8) & 1);
    for (int bit = 0; bit < 5; bit++)
      if (code >> bit & 1) out[(group * 5 + bit) / 8] |= (unsigned char)(1u << ((group * 5 + bit) % 8));
  }
}

/* The ladder spans about three octaves around deviation / 4 (nibbles deviate by 3.3, and the spread of the rungs adds
 * a fifth): a step of 3/31 * (0.75 .. 1.25) octaves, 15.5 steps below the middle at its lower end. */
static void draw_ladder(const Draw *d, int64_t row, int middle, unsigned char *out) {
  uint16_t pair[2];
  int small = dflash_draw_row_is_small(&d->size, row); /* its step is a subnormal f16 */
  pair[1] = draw_field(d->scales, 2 * row + 1, small ? 0x1p-15f : 3.0f / 31.0f);
  uint32_t jitter = dflash_random_u32(d->scales, 2 * (uint64_t)row) >> 16;
  float centre = (float)middle * 0x1p-8f + ((float)jitter * 0x1p-17f - 0.25f);
  if (small) centre -= (float)SMALL_OCTAVES;
  pair[0] = dflash_f16_round(centre - 15.5f * dflash_f16_value(pair[1]));
  memcpy(out, pair, sizeof pair);
}

static void draw_q4_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Draw *d = context;
  int64_t groups = d->cols / 32, code_bytes = (groups * 5 + 7) / 8;
  unsigned char *ladders = d->data + d->rows * groups * 16, *codes = ladders + d->rows * 4;
  unsigned char map[256];
  int middle = dflash_draw_log2(d->size.deviation) - 2 * 256;
  (void)worker;
  fill_nibble_map(map);
  shift_nibble_map(d, map);
  for (int64_t row = begin; row < end; row++) {
    draw_nibbles(d, map, row);
    draw_ladder(d, row, middle, ladders + 4 * row);
    draw_codes(d, codes + row * code_bytes, row, groups);
  }
}

DflashStatus dflash_draw_weight(const DflashGeometry *geometry, const DflashWeightEntry *entry, int32_t storage,
                                uint64_t seed, int stress, DflashPool *pool, DflashTensor *tensor, DflashError *error) {
  DflashStatus status = dflash_draw_open(entry, storage, tensor, error);
  if (status != DFLASH_OK) return status;
  Draw draw = {.tensor = tensor,
               .data = (unsigned char *)(uintptr_t)tensor->data,
               .rows = dflash_tensor_rows(tensor),
               .cols = dflash_tensor_cols(tensor),
               .values = dflash_draw_stream(seed, entry->name, ""),
               .scales = dflash_draw_stream(seed, entry->name, "/scales"),
               .columns = dflash_draw_stream(seed, entry->name, "/columns"),
               .codes = dflash_draw_stream(seed, entry->name, "/codes")};
  draw.size = dflash_draw_size(geometry, entry, stress);
  DflashRangeFn rows = draw_real_rows;
  if (storage == DFLASH_STORAGE_Q8_2F) rows = draw_q8_rows;
  if (storage == DFLASH_STORAGE_Q4TP) rows = draw_q4_rows;
  dflash_pool_run(pool, draw.rows, 1 + 65536 / draw.cols, rows, &draw);
  if (storage == DFLASH_STORAGE_Q8_2F) draw_q8_columns(&draw);
  return DFLASH_OK;
}
