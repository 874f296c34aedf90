/* Contexts of a small drawn model, and what they give back. */
#ifndef DFLASH_VULKAN_TESTS_CONTEXTS_H
#define DFLASH_VULKAN_TESTS_CONTEXTS_H

#include "drawn_model.h"
#include "fixture.h"

/* Layer 0 sees all, layer 1 has a window, layer 2 the same without rotation; KV is the width of a row of K or V. */
enum {
  WINDOW = 9,
  KEEP = WINDOW - 1 + VULKAN_REWIND_ROWS,
  LAYERS = 3,
  KV = 10,
  HIDDEN = 32,
  TAPS = 2 * HIDDEN,
  LONGEST = 1500
};

typedef struct Contexts {
  DrawnModel drawn;
  DflashModel *model;
  float taps[LONGEST * TAPS];
} Contexts;

extern Contexts contexts;

/* Opens the model; ends the program with TEST_SKIPPED where there is no device. */
void contexts_open(void);
void contexts_close(void);

DflashSequence *open_sequence(uint32_t flags);
/* Rows drawn by position and seed. rows <= LONGEST. */
DflashStatus push(DflashSequence *s, int64_t pos, int64_t rows, uint64_t seed, DflashError *error);
void push_ok(DflashSequence *s, int64_t pos, int64_t rows, uint64_t seed);

int64_t kept_from(DflashSequence *s, int64_t layer);
void assert_span(DflashSequence *s, int64_t first, int64_t len);
/* K, then V, each [rows][KV], of positions from pos on; free() releases it. */
float *read_rows(DflashSequence *s, int64_t layer, int64_t pos, int64_t rows);
/* b has the rows that a keeps of every layer, with the same bits. */
void assert_same(DflashSequence *a, DflashSequence *b);

/* K and V of every layer, drawn, as load takes them. */
typedef struct LoadedRows {
  float *owned[2 * LAYERS];
  const float *k[LAYERS], *v[LAYERS];
} LoadedRows;

void open_rows(LoadedRows *rows, int64_t count, uint64_t seed);
void close_rows(LoadedRows *rows);
/* s holds `count` of the rows, which were loaded at `first`, from pos on. */
void assert_loaded(DflashSequence *s, const LoadedRows *rows, int64_t first, int64_t pos, int64_t count);

#endif
