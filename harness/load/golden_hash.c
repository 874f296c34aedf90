#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/hash.h"
#include "load/reader.h"

enum { INPUTS, VALUES, SCALES, HASH_COUNT };

/* What is computed; NULL: not wanted. */
typedef struct Hashes {
  DflashSha256 *at[HASH_COUNT];
} Hashes;

static DflashStatus fail_memory(const DflashGolden *golden, DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its hashes", golden->path);
}

/* One case at a time: its paths have a common beginning that no other path shares. */
static DflashStatus feed_case(DflashGolden *golden, int64_t index, const Hashes *hashes, DflashError *error) {
  static void (*const add[HASH_COUNT])(DflashHashList *, const DflashGeometry *, const DflashCase *) = {
      dflash_hash_case_inputs, dflash_hash_case_values, dflash_hash_case_scales};
  DflashCase c;
  DflashStatus status = dflash_golden_case(golden, index, &c, error);
  if (status != DFLASH_OK) return status;
  for (int i = 0; i < HASH_COUNT; i++) {
    DflashHashList list = {0};
    if (!hashes->at[i]) continue;
    add[i](&list, &golden->geometry, &c);
    if (!dflash_hash_feed(&list, hashes->at[i])) status = fail_memory(golden, error);
  }
  dflash_case_close(&c);
  return status;
}

typedef struct Place {
  const char *name;
  int64_t index;
} Place;

static int compare_places(const void *a, const void *b) {
  return dflash_hash_case_order(((const Place *)a)->name, ((const Place *)b)->name);
}

static DflashStatus feed_cases(DflashGolden *golden, const Hashes *hashes, DflashError *error) {
  size_t count = (size_t)golden->case_count;
  Place *places = calloc(count + 1, sizeof *places);
  if (!places) return fail_memory(golden, error);
  for (size_t i = 0; i < count; i++) places[i] = (Place){golden->cases[i], (int64_t)i};
  qsort(places, count, sizeof *places, compare_places);
  DflashStatus status = DFLASH_OK;
  for (size_t i = 0; i < count && status == DFLASH_OK; i++) status = feed_case(golden, places[i].index, hashes, error);
  free(places);
  return status;
}

static void add_weights(DflashGolden *golden, DflashHashList *list) {
  for (int64_t i = 0; i < dflash_weight_count(&golden->geometry); i++) {
    DflashWeightEntry entry;
    char path[sizeof entry.name + 16] = "/weights/";
    dflash_weight_entry(&golden->geometry, i, &entry);
    strcat(path, entry.name);
    dflash_hash_tensor(list, path, dflash_weight_at(&golden->geometry, &golden->set, i));
  }
  dflash_hash_tensor(list, "/target/head", &golden->set.weights.head);
}

/* Everything but the cases, in both hashes that have more; all of it sorts after "/cases/". */
static DflashStatus feed_rest(DflashGolden *golden, const Hashes *hashes, DflashError *error) {
  DflashHashList inputs = {0}, values = {0};
  int64_t count;
  float *rows;
  double *margins;
  DflashStatus status = dflash_golden_router_rows(golden, &count, &rows, &margins, error);
  if (status != DFLASH_OK) return status;
  dflash_hash_geometry(&inputs, &golden->geometry, golden->set.inv_freq);
  if (golden->router.present) dflash_hash_router(&inputs, &golden->router, count, rows);
  dflash_hash_margins(&values, count, margins);
  add_weights(golden, &inputs);
  if (!dflash_hash_feed(&inputs, hashes->at[INPUTS])) status = fail_memory(golden, error);
  if (!dflash_hash_feed(&values, hashes->at[VALUES])) status = fail_memory(golden, error);
  free(rows);
  free(margins);
  return status;
}

/* Into texts[INPUTS], texts[VALUES], texts[SCALES]; NULL: not wanted. The first two go together. */
static DflashStatus compute(DflashGolden *golden, char *const texts[HASH_COUNT], DflashError *error) {
  Hashes hashes = {0};
  DflashStatus status = DFLASH_OK;
  for (int i = 0; i < HASH_COUNT; i++)
    if (texts[i] && !(hashes.at[i] = dflash_sha256_open())) status = fail_memory(golden, error);
  if (status == DFLASH_OK) status = feed_cases(golden, &hashes, error);
  if (status == DFLASH_OK && texts[INPUTS]) status = feed_rest(golden, &hashes, error);
  for (int i = 0; i < HASH_COUNT; i++) {
    if (!texts[i]) continue;
    dflash_sha256_close(hashes.at[i], texts[i]);
    if (status == DFLASH_OK && !texts[i][0])
      status = dflash_error_set(error, DFLASH_INTERNAL, "%s: SHA-256 failed", golden->path);
  }
  return status;
}

DflashStatus dflash_golden_hashes(DflashGolden *golden, DflashGoldenHashes *hashes, DflashError *error) {
  char *const texts[HASH_COUNT] = {hashes->inputs, hashes->values, hashes->scales};
  return compute(golden, texts, error);
}

static int verdict(const char *stored, const char *computed) {
  if (!stored) return -1;
  return strcmp(stored, computed) == 0;
}

DflashStatus dflash_golden_check_hashes(DflashGolden *golden, int *inputs, int *values, DflashError *error) {
  char inputs_hash[65], values_hash[65];
  char *const texts[HASH_COUNT] = {inputs_hash, values_hash, NULL};
  const char *stored_inputs = golden->texts[DFLASH_TEXT_INPUTS], *stored_values = golden->texts[DFLASH_TEXT_VALUES];
  *inputs = *values = -1;
  if (!stored_inputs && !stored_values) return DFLASH_OK;
  DflashStatus status = compute(golden, texts, error);
  if (status != DFLASH_OK) return status;
  *inputs = verdict(stored_inputs, inputs_hash);
  *values = verdict(stored_values, values_hash);
  return DFLASH_OK;
}

DflashStatus dflash_golden_check_scales_hash(DflashGolden *golden, int *scales, DflashError *error) {
  char scales_hash[65];
  char *const texts[HASH_COUNT] = {NULL, NULL, scales_hash};
  const char *stored = golden->texts[DFLASH_TEXT_SCALES];
  *scales = -1;
  if (!stored) return DFLASH_OK;
  DflashStatus status = compute(golden, texts, error);
  if (status == DFLASH_OK) *scales = verdict(stored, scales_hash);
  return status;
}
