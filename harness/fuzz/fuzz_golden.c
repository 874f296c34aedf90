/* What a golden file may claim, as plain numbers: geometry, run sizes, operations, descriptions of datasets. Whatever
 * the checks let through must be usable: data inside the file, shapes as wanted, sizes that fit. */
#include <stdlib.h>
#include <string.h>

#include "load/hash.h"
#include "load/reader.h"
#include "load/stored.h"
#include "model/geometry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Input {
  const uint8_t *at;
  size_t left;
} Input;

static void take(Input *input, void *out, size_t bytes) {
  size_t got = bytes < input->left ? bytes : input->left;
  memset(out, 0, bytes);
  memcpy(out, input->at, got);
  input->at += got;
  input->left -= got;
}

static int64_t take_i64(Input *input) {
  int64_t value;
  take(input, &value, sizeof value);
  return value;
}

static unsigned take_byte(Input *input) {
  uint8_t value;
  take(input, &value, 1);
  return value;
}

static void expect(bool condition) {
  if (!condition) abort();
}

static void take_geometry(Input *input, DflashGeometry *geometry) {
  memset(geometry, 0, sizeof *geometry);
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    char *place = (char *)geometry + field->offset;
    if (field->kind != DFLASH_FIELD_LIST) {
      take(input, place, 8);
      continue;
    }
    DflashList *list = (DflashList *)(void *)place;
    list->count = take_byte(input) % 8;
    for (int64_t k = 0; k < list->count; k++) list->at[k] = take_i64(input);
  }
}

static void take_stored(Input *input, DflashStored *found) {
  memset(found, 0, sizeof *found);
  found->number = (int)(take_byte(input) % 4);
  found->size = take_byte(input) % 20 ? 4 : (uint64_t)take_i64(input);
  found->is_signed = take_byte(input) & 1;
  found->plain = take_byte(input) & 1;
  found->rank = (int)(take_byte(input) % 7) - 1;
  for (int i = 0; i < DFLASH_STORED_RANK; i++) found->shape[i] = (uint64_t)take_i64(input);
  found->layout = (int)(take_byte(input) % 4);
  found->external = take_byte(input) % 16 == 15;
  found->whole = take_byte(input) & 1;
  found->offset = (uint64_t)take_i64(input);
  found->allocated = (uint64_t)take_i64(input);
}

static void check_place(const DflashStored *found, const DflashWanted *wanted, uint64_t file_size) {
  DflashPlace place;
  if (dflash_stored_place(found, wanted, "/x", file_size, &place, NULL) != DFLASH_OK) return;
  uint64_t count = 1;
  for (int i = 0; i < wanted->rank; i++) {
    expect(place.shape[i] >= 0 && (wanted->shape[i] == DFLASH_ANY || wanted->shape[i] == place.shape[i]));
    count *= (uint64_t)place.shape[i];
  }
  expect(place.count == count && place.bytes == count * dflash_element_size(wanted->element));
  expect((place.how == DFLASH_PLACE_EMPTY) == (count == 0));
  if (place.how != DFLASH_PLACE_MAP) return;
  expect(found->offset <= file_size && place.bytes <= file_size - found->offset);
  expect(found->offset % (wanted->element == DFLASH_ELEMENT_F64 ? 8 : 4) == 0);
  expect(found->plain && !found->external);
}

static void check_any_dataset(Input *input) {
  DflashStored found;
  DflashWanted wanted = {.element = (int)(take_byte(input) % 6), .rank = (int)(take_byte(input) % 4)};
  take_stored(input, &found);
  for (int i = 0; i < wanted.rank; i++)
    wanted.shape[i] = take_byte(input) % 3 ? (int64_t)(found.shape[i] & INT64_MAX) : DFLASH_ANY;
  check_place(&found, &wanted, (uint64_t)take_i64(input));
}

/* A dataset of the right type and shape for every stage of a case that was let through. */
static void check_stages(const DflashGeometry *geometry, const DflashCase *c, uint64_t file_size) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(geometry, i, &stage, &layer); i++) {
    DflashWanted wanted = {.element = DFLASH_ELEMENT_F32};
    DflashStored found = {.number = DFLASH_NUMBER_FLOAT, .size = 4, .plain = true, .offset = 64};
    found.rank = wanted.rank = dflash_stage_shape(geometry, &c->sizes, stage, wanted.shape);
    for (int k = 0; k < wanted.rank; k++) {
      expect(wanted.shape[k] >= 0);
      found.shape[k] = (uint64_t)wanted.shape[k];
    }
    check_place(&found, &wanted, file_size);
  }
}

static void hash_case(const DflashGeometry *geometry, DflashCase *c) {
  char hex[65];
  DflashHashList list = {0};
  DflashSha256 *hash = dflash_sha256_open();
  c->h = calloc((size_t)(c->sizes.rows * geometry->hidden) + 1, sizeof *c->h);
  c->h_owned = true;
  if (hash && c->h) {
    dflash_hash_case_inputs(&list, geometry, c);
    expect(dflash_hash_feed(&list, hash));
  }
  dflash_sha256_close(hash, hex);
  expect(!hash || strlen(hex) == 64);
}

static void check_case(Input *input, const DflashGeometry *geometry) {
  DflashCase c;
  char name[16] = {0};
  take(input, name, sizeof name - 1);
  if (dflash_case_name_fault(name) || dflash_case_open(&c, geometry, name, NULL) != DFLASH_OK) return;
  c.anchor_pos = take_i64(input);
  c.anchor_token = take_i64(input);
  c.sizes.rows = take_i64(input);
  c.sizes.n_draft = take_i64(input);
  c.sizes.head_width = take_i64(input);
  c.sizes.push_rows = take_i64(input);
  c.sizes.context_len = take_i64(input);
  c.context_first = take_i64(input);
  c.tap_rows = take_i64(input);
  uint64_t file_size = (uint64_t)take_i64(input);
  c.op_count = take_byte(input) % 24;
  c.ops = calloc((size_t)c.op_count + 1, sizeof *c.ops);
  for (int64_t i = 0; c.ops && i < c.op_count; i++) {
    c.ops[i].op = (int32_t)(take_byte(input) % 4);
    c.ops[i].pos = take_i64(input);
    c.ops[i].first_row = take_i64(input);
    c.ops[i].n_rows = take_i64(input);
  }
  if (c.ops && dflash_case_check(&c, geometry, NULL) == DFLASH_OK) {
    check_stages(geometry, &c, file_size);
    /* no taps here: only cases without them are hashed */
    if (c.tap_rows == 0 && c.sizes.rows * geometry->hidden < 1 << 16) hash_case(geometry, &c);
  }
  dflash_case_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Input input = {data, size};
  DflashGeometry geometry;
  check_any_dataset(&input);
  take_geometry(&input, &geometry);
  if (dflash_geometry_check(&geometry, NULL) == DFLASH_OK) check_case(&input, &geometry);
  return 0;
}
