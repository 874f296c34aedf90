#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/hash.h"
#include "load/reader.h"

typedef struct Hashes {
  DflashSha256 *inputs, *values;
} Hashes;

static DflashStatus fail_memory(const DflashGolden *golden, DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its hashes", golden->path);
}

/* One case at a time: its paths have a common beginning that no other path shares. */
static DflashStatus feed_case(DflashGolden *golden, int64_t index, const Hashes *hashes, DflashError *error) {
  DflashCase c;
  DflashHashList inputs = {0}, values = {0};
  DflashStatus status = dflash_golden_case(golden, index, &c, error);
  if (status != DFLASH_OK) return status;
  dflash_hash_case_inputs(&inputs, &golden->geometry, &c);
  dflash_hash_case_values(&values, &golden->geometry, &c);
  if (!dflash_hash_feed(&inputs, hashes->inputs)) status = fail_memory(golden, error);
  if (!dflash_hash_feed(&values, hashes->values)) status = fail_memory(golden, error);
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

/* Everything but the cases; all of it sorts after "/cases/". */
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
  if (!dflash_hash_feed(&inputs, hashes->inputs)) status = fail_memory(golden, error);
  if (!dflash_hash_feed(&values, hashes->values)) status = fail_memory(golden, error);
  free(rows);
  free(margins);
  return status;
}

DflashStatus dflash_golden_hashes(DflashGolden *golden, char inputs[65], char values[65], DflashError *error) {
  const Hashes hashes = {dflash_sha256_open(), dflash_sha256_open()};
  DflashStatus status = hashes.inputs && hashes.values ? DFLASH_OK : fail_memory(golden, error);
  if (status == DFLASH_OK) status = feed_cases(golden, &hashes, error);
  if (status == DFLASH_OK) status = feed_rest(golden, &hashes, error);
  dflash_sha256_close(hashes.inputs, inputs);
  dflash_sha256_close(hashes.values, values);
  if (status == DFLASH_OK && (!inputs[0] || !values[0]))
    status = dflash_error_set(error, DFLASH_INTERNAL, "%s: SHA-256 failed", golden->path);
  return status;
}

static int verdict(const char *stored, const char *computed) {
  if (!stored) return -1;
  return strcmp(stored, computed) == 0;
}

DflashStatus dflash_golden_check_hashes(DflashGolden *golden, int *inputs, int *values, DflashError *error) {
  char inputs_hash[65], values_hash[65];
  const char *stored_inputs = golden->texts[DFLASH_TEXT_INPUTS], *stored_values = golden->texts[DFLASH_TEXT_VALUES];
  *inputs = *values = -1;
  if (!stored_inputs && !stored_values) return DFLASH_OK;
  DflashStatus status = dflash_golden_hashes(golden, inputs_hash, values_hash, error);
  if (status != DFLASH_OK) return status;
  *inputs = verdict(stored_inputs, inputs_hash);
  *values = verdict(stored_values, values_hash);
  return DFLASH_OK;
}
