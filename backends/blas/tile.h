/* The body of one kernel. The including file sets, for its instruction set:
 *   KERNEL_NAME   "avx2", and KERNEL_ENTRY, the function that returns the kernel
 *   LANES         floats of a vector: 4, 8 or 16
 *   GROUP         rows of a group
 *   OPEN_GROUPS   groups of rows from which opening a stored block pays, by measurement
 *   TILE_PANELS   panels of a tile, and TILE_PANELS_Q4
 *   lanes_f16(p), lanes_bf16(p), lanes_i8(p)  LANES numbers of that kind at p as floats
 *   lanes_nibble(words, i)  nibble i of each word, less 8, as floats
 * after including tile_types.h.
 */
#define INLINE static inline __attribute__((always_inline))

/* Loads LANES weights of column `column` of a form that needs no context. */
INLINE Lanes load_column(const int form, const unsigned char *panel, int64_t column, int64_t column_stride, int part) {
  const int64_t at = column * PANEL + part * LANES;
  if (form == FORM_F16) return lanes_f16(panel + 2 * at);
  if (form == FORM_BF16) return lanes_bf16(panel + 2 * at);
  if (form == FORM_Q8) return lanes_i8(panel + at);
  return *(const LanesLoose *)(panel + 4 * (column * column_stride + part * LANES));
}

#define VECTORS (PANEL / LANES)

/* sums += scale * acc */
INLINE void flush(const int panels, const int rows, const int scaled, const DflashTile *t, int64_t column,
                  Lanes acc[TILE_PANELS_MAX][VECTORS][GROUP_MAX]) {
  for (int p = 0; p < panels; p++)
    for (int v = 0; v < VECTORS; v++) {
      Lanes scale = {0};
      if (scaled)
        scale = *(const LanesLoose *)(t->scales + p * t->scale_stride + column / Q4_GROUP * PANEL + v * LANES);
      for (int m = 0; m < rows; m++) {
        LanesLoose *sum = (LanesLoose *)(t->sums + (p * rows + m) * PANEL + v * LANES);
        if (scaled)
          *sum += acc[p][v][m] * scale;
        else
          *sum += acc[p][v][m];
      }
    }
}

INLINE void clear(const int panels, const int rows, Lanes acc[TILE_PANELS_MAX][VECTORS][GROUP_MAX]) {
  for (int p = 0; p < panels; p++)
    for (int v = 0; v < VECTORS; v++)
      for (int m = 0; m < rows; m++) acc[p][v][m] = (Lanes){0};
}

INLINE void multiply_column(const int panels, const int rows, Lanes w[TILE_PANELS_MAX][VECTORS], const float *x,
                            Lanes acc[TILE_PANELS_MAX][VECTORS][GROUP_MAX]) {
  for (int m = 0; m < rows; m++)
    for (int p = 0; p < panels; p++)
      for (int v = 0; v < VECTORS; v++) acc[p][v][m] += w[p][v] * x[m];
}

INLINE void multiply_plain(const int form, const int panels, const int rows, const DflashTile *t, int64_t begin,
                           int64_t end, Lanes acc[TILE_PANELS_MAX][VECTORS][GROUP_MAX]) {
  const unsigned char *weights = t->weights;
  for (int64_t k = begin; k < end; k++) {
    Lanes w[TILE_PANELS_MAX][VECTORS];
    for (int p = 0; p < panels; p++)
      for (int v = 0; v < VECTORS; v++)
        w[p][v] = load_column(form, weights + p * t->panel_stride, k, t->column_stride, v);
    multiply_column(panels, rows, w, t->x + k * rows, acc);
  }
}

INLINE void multiply_nibbles(const int panels, const int rows, const DflashTile *t, int64_t begin, int64_t end,
                             Lanes acc[TILE_PANELS_MAX][VECTORS][GROUP_MAX]) {
  const unsigned char *weights = t->weights;
  for (int64_t k = begin; k < end; k += 8) {
    LanesWord words[TILE_PANELS_MAX][VECTORS];
    for (int p = 0; p < panels; p++)
      for (int v = 0; v < VECTORS; v++)
        words[p][v] = *(const LanesWordLoose *)(weights + p * t->panel_stride + (k * PANEL / 8 + v * LANES) * 4);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      Lanes w[TILE_PANELS_MAX][VECTORS];
      for (int p = 0; p < panels; p++)
        for (int v = 0; v < VECTORS; v++) w[p][v] = lanes_nibble(words[p][v], i);
      multiply_column(panels, rows, w, t->x + (k + i) * rows, acc);
    }
  }
}

INLINE void run_tile(const int form, const int panels, const int rows, const DflashTile *t) {
  const int scaled = form == FORM_Q4 || form == FORM_Q4_OPEN;
  const int64_t step = scaled ? Q4_GROUP : BLOCK_COLUMNS;
  for (int64_t begin = 0; begin < t->columns; begin += step) {
    const int64_t end = begin + step < t->columns ? begin + step : t->columns;
    Lanes acc[TILE_PANELS_MAX][VECTORS][GROUP_MAX];
    clear(panels, rows, acc);
    if (form == FORM_Q4)
      multiply_nibbles(panels, rows, t, begin, end, acc);
    else
      multiply_plain(form, panels, rows, t, begin, end, acc);
    flush(panels, rows, scaled, t, begin, acc);
  }
}

#define TILE(form, panels, rows) \
  static void tile_##form##_##rows(const DflashTile *t) { run_tile(FORM_##form, panels, rows, t); }
#if GROUP == 8
#define TILES(form, panels) \
  TILE(form, panels, 1)     \
  TILE(form, panels, 2)     \
  TILE(form, panels, 3)     \
  TILE(form, panels, 4) TILE(form, panels, 5) TILE(form, panels, 6) TILE(form, panels, 7) TILE(form, panels, 8)
#define TILE_ROW(form)                                                                                    \
  {                                                                                                       \
    tile_##form##_1, tile_##form##_2, tile_##form##_3, tile_##form##_4, tile_##form##_5, tile_##form##_6, \
        tile_##form##_7, tile_##form##_8                                                                  \
  }
#elif GROUP == 4
#define TILES(form, panels) TILE(form, panels, 1) TILE(form, panels, 2) TILE(form, panels, 3) TILE(form, panels, 4)
#define TILE_ROW(form) \
  { tile_##form##_1, tile_##form##_2, tile_##form##_3, tile_##form##_4 }
#elif GROUP == 2
#define TILES(form, panels) TILE(form, panels, 1) TILE(form, panels, 2)
#define TILE_ROW(form) \
  { tile_##form##_1, tile_##form##_2 }
#endif
TILES(F32, TILE_PANELS)
TILES(F16, TILE_PANELS)
TILES(BF16, TILE_PANELS)
TILES(Q8, TILE_PANELS)
TILES(Q4, TILE_PANELS_Q4)
TILES(Q4_OPEN, TILE_PANELS)

INLINE void open_columns(const int form, const unsigned char *weights, int64_t columns, float *out) {
  for (int64_t k = 0; k < columns; k++)
    for (int v = 0; v < VECTORS; v++)
      *(LanesLoose *)(out + k * PANEL + v * LANES) = load_column(form, weights, k, PANEL, v);
}

static void open_f16(const void *weights, int64_t columns, float *out) {
  open_columns(FORM_F16, weights, columns, out);
}

static void open_bf16(const void *weights, int64_t columns, float *out) {
  open_columns(FORM_BF16, weights, columns, out);
}

static void open_q8(const void *weights, int64_t columns, float *out) { open_columns(FORM_Q8, weights, columns, out); }

static void open_q4(const void *weights, int64_t columns, float *out) {
  const LanesWordLoose *words = weights;
  for (int64_t k = 0; k < columns; k += 8, words += VECTORS)
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
      for (int v = 0; v < VECTORS; v++) *(LanesLoose *)(out + (k + i) * PANEL + v * LANES) = lanes_nibble(words[v], i);
}
