/* Weights of a drawn drafter: which size each tensor's elements have, and the rows of each storage. */
#include <string.h>

#include "base/error.h"
#include "golden/draw.h"
#include "model/storage.h"

typedef struct Draw {
  const DflashTensor *tensor;
  unsigned char *data;
  int64_t rows, cols;
  float mean, deviation;
  DflashRandom values, scales, columns, codes;
} Draw;

/* Sizes, found by the end of the name. Products keep the size of what they multiply; o and down are larger, so that
 * the residual stream grows from layer to layer as in a trained model; queries and keys make scores that deviate by
 * about two; base and dynamic kernels share the convolution's unit variance in equal parts; head and selector make
 * terms of one size, so that the walk decides. */
typedef struct Size {
  const char *suffix;
  float mean, spread; /* vectors: mean and deviation; matrices: spread over the root of the columns */
} Size;

static const Size SIZES[] = {
    {"self_attn.q_norm.weight", 1.5f, 0.25f},
    {"self_attn.k_norm.weight", 1.5f, 0.25f},
    {"norm.weight", 1.0f, 0.25f},
    {"o_proj.weight", 0.0f, 2.0f},
    {"down_proj.weight", 0.0f, 2.0f},
    {"lm_head.weight", 0.0f, 2.0f},
};

static void choose_size(const DflashGeometry *g, const DflashWeightEntry *entry, Draw *draw) {
  const Size *size = NULL;
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES && !size; i++)
    if (dflash_draw_ends_with(entry->name, SIZES[i].suffix)) size = &SIZES[i];
  float spread = size ? size->spread : 1.0f;
  float taps = dflash_draw_inverse_root((uint64_t)(2 * g->conv_kernel)); /* base and dynamic part of every tap */
  draw->mean = size ? size->mean : 0.0f;
  draw->deviation = spread;
  if (entry->kind == DFLASH_KIND_BASE) draw->deviation = taps;
  if (dflash_draw_ends_with(entry->name, "kernel_projection.weight")) spread = taps;
  if (entry->kind == DFLASH_KIND_MATRIX) draw->deviation = spread * dflash_draw_inverse_root((uint64_t)draw->cols);
  if (dflash_draw_ends_with(entry->name, "predecessor_codebook"))
    draw->deviation = dflash_draw_inverse_root((uint64_t)draw->cols); /* successor: 1 */
}

/* ---- f32, f16, bf16 ---- */

static void draw_real_rows(void *context, int64_t begin, int64_t end, int worker) {
  enum { CHUNK = 256 };
  const Draw *d = context;
  float values[CHUNK];
  (void)worker;
  for (int64_t at = begin * d->cols, stop = end * d->cols; at < stop; at += CHUNK) {
    size_t count = stop - at < CHUNK ? (size_t)(stop - at) : CHUNK;
    dflash_draw_normal(d->values, (uint64_t)at, count, d->deviation, values);
    for (size_t i = 0; i < count; i++) {
      float value = values[i] + d->mean;
      if (d->tensor->storage == DFLASH_STORAGE_F32) ((float *)(void *)d->data)[at + (int64_t)i] = value;
      if (d->tensor->storage == DFLASH_STORAGE_F16)
        ((uint16_t *)(void *)d->data)[at + (int64_t)i] = dflash_f16_round(value);
      if (d->tensor->storage == DFLASH_STORAGE_BF16)
        ((uint16_t *)(void *)d->data)[at + (int64_t)i] = dflash_bf16_round(value);
    }
  }
}

/* ---- q8_2f ---- */

/* Half the sum of two uniform bytes about zero: -128 .. 127, deviation 52.3. One column of each row is set to -128. */
static void draw_code_row(const Draw *d, int64_t row) {
  enum { CHUNK = 512 };
  uint32_t words[CHUNK / 2];
  signed char *codes = (signed char *)d->data + row * d->cols;
  uint64_t begin = (uint64_t)row * (uint64_t)((d->cols + 1) / 2);
  for (int64_t at = 0; at < d->cols; at += CHUNK) {
    int64_t count = d->cols - at < CHUNK ? d->cols - at : CHUNK;
    dflash_random_fill(d->values, begin + (uint64_t)at / 2, (size_t)(count + 1) / 2, words);
    for (int64_t i = 0; i < count; i++) {
      int half = (int)(words[i / 2] >> (16 * (i % 2))) & 0xffff;
      codes[at + i] = (signed char)(((half & 0xff) + (half >> 8) + 1) / 2 - 128);
    }
  }
  codes[dflash_random_below(d->codes, (uint64_t)row, (uint32_t)d->cols)] = -128;
}

/* scale * (0.75 .. 1.25) */
static uint16_t draw_field(DflashRandom stream, int64_t index, float scale) {
  uint32_t word = dflash_random_u32(stream, (uint64_t)index) >> 16;
  return dflash_f16_round(scale * (0.75f + (float)word * 0x1p-17f));
}

static void draw_q8_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Draw *d = context;
  unsigned char *scales = d->data + d->rows * d->cols;
  (void)worker;
  for (int64_t row = begin; row < end; row++) {
    draw_code_row(d, row);
    uint16_t scale = draw_field(d->scales, row, d->deviation / 52.25f);
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

static void draw_nibbles(const Draw *d, const unsigned char map[256], int64_t row) {
  enum { GROUP = 32 };
  int64_t groups = d->cols / GROUP;
  unsigned char *out = d->data + row * groups * (GROUP / 2);
  for (int64_t group = 0; group < groups; group++) {
    uint32_t words[GROUP / 4];
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
  pair[1] = draw_field(d->scales, 2 * row + 1, 3.0f / 31.0f);
  uint32_t jitter = dflash_random_u32(d->scales, 2 * (uint64_t)row) >> 16;
  float centre = (float)middle * 0x1p-8f + ((float)jitter * 0x1p-17f - 0.25f);
  pair[0] = dflash_f16_round(centre - 15.5f * dflash_f16_value(pair[1]));
  memcpy(out, pair, sizeof pair);
}

static void draw_q4_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Draw *d = context;
  int64_t groups = d->cols / 32, code_bytes = (groups * 5 + 7) / 8;
  unsigned char *ladders = d->data + d->rows * groups * 16, *codes = ladders + d->rows * 4;
  unsigned char map[256];
  int middle = dflash_draw_log2(d->deviation) - 2 * 256;
  (void)worker;
  fill_nibble_map(map);
  for (int64_t row = begin; row < end; row++) {
    draw_nibbles(d, map, row);
    draw_ladder(d, row, middle, ladders + 4 * row);
    draw_codes(d, codes + row * code_bytes, row, groups);
  }
}

DflashStatus dflash_draw_weight(const DflashGeometry *geometry, const DflashWeightEntry *entry, int32_t storage,
                                uint64_t seed, DflashPool *pool, DflashTensor *tensor, DflashError *error) {
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
  choose_size(geometry, entry, &draw);
  DflashRangeFn rows = draw_real_rows;
  if (storage == DFLASH_STORAGE_Q8_2F) rows = draw_q8_rows;
  if (storage == DFLASH_STORAGE_Q4TP) rows = draw_q4_rows;
  dflash_pool_run(pool, draw.rows, 1 + 65536 / draw.cols, rows, &draw);
  if (storage == DFLASH_STORAGE_Q8_2F) draw_q8_columns(&draw);
  return DFLASH_OK;
}
