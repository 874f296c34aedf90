#include "load/dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "load/reader.h"
#include "model/geometry.h"
#include "model/stage_table.h"

const char *const dflash_dump_texts[DFLASH_DUMP_TEXTS] = {"golden", "case",    "mode",   "stage",   "outcome",
                                                          "note",   "backend", "device", "profile", "reproduce"};
const char *const dflash_dump_numbers[DFLASH_DUMP_NUMBERS] = {"layer", "position", "damage", "inherited"};

#define MOST_DAMAGE (INT64_C(1) << 40)

static const struct {
  const char *name;
  int32_t stage;
} checks[] = {{"context_state.k", DFLASH_STAGE_CONTEXT_K},
              {"context_state.v", DFLASH_STAGE_CONTEXT_K},
              {"block.logits", DFLASH_STAGE_HEAD_LOGITS},
              {"block.selector_hidden", DFLASH_STAGE_SELECTOR_HIDDEN}};

int32_t dflash_dump_stage(const char *text, const char **check) {
  *check = NULL;
  for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
    if (strcmp(text, checks[i].name) == 0) {
      *check = checks[i].name;
      return checks[i].stage;
    }
  return dflash_stage_find(text);
}

static DflashStatus fail(DflashError *error, const char *name, int64_t value, const char *valid) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is %" PRId64 "; valid: %s", name, value, valid);
}

/* Rows as in a golden; the head's width is a case's own. */
static DflashStatus check_sizes(const DflashDumpEntry *e, int32_t stage, DflashError *error) {
  const DflashGeometry *g = e->geometry;
  DflashRunSizes sizes = {.head_width = e->width};
  int64_t count;
  if (e->rows < 1 || e->rows > INT64_C(1) << 28) return fail(error, "rows", e->rows, "1 to 2^28");
  if (e->width < 1 || e->width != dflash_stage_width(g, &sizes, stage) ||
      (stage == DFLASH_STAGE_HEAD_LOGITS && e->width > g->vocab))
    return fail(error, "width", e->width, "the stage's by the geometry");
  if (!dflash_mul_i64(e->rows, e->width, &count) || count > INT64_MAX / 8) return fail(error, "rows", e->rows, "less");
  for (int i = 0; i < e->input_count; i++)
    if (e->inputs[i].rows < 0 || e->inputs[i].width < 1 ||
        !dflash_mul_i64(e->inputs[i].rows, e->inputs[i].width, &count) || count > INT64_MAX / 8)
      return fail(error, "an input's rows", e->inputs[i].rows, "0 and more, of at least one column");
  return DFLASH_OK;
}

DflashStatus dflash_dump_check(const DflashDumpEntry *e, DflashError *error) {
  const char *check, *name = e->texts[DFLASH_DUMP_STAGE];
  int32_t stage = dflash_dump_stage(name, &check);
  const char *fault = dflash_case_name_fault(e->texts[DFLASH_DUMP_CASE]);
  if (fault != NULL) return dflash_error_set(error, DFLASH_INVALID_DATA, "the case's name is %s", fault);
  if (stage == DFLASH_STAGE_NONE || stage == DFLASH_STAGE_SELECT)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "stage \"%.64s\" has no values", name);
  int64_t layer = e->numbers[DFLASH_DUMP_LAYER], inherited = e->numbers[DFLASH_DUMP_INHERITED];
  int64_t position = e->numbers[DFLASH_DUMP_POSITION], damage = e->numbers[DFLASH_DUMP_DAMAGE];
  if (layer < 0 || layer >= dflash_stage_layers(e->geometry, stage)) return fail(error, "layer", layer, "below layers");
  if (position < 0 || position > INT64_C(1) << 62) return fail(error, "position", position, "0 to 2^62");
  if (damage < -MOST_DAMAGE || damage > MOST_DAMAGE) return fail(error, "damage", damage, "-2^40 to 2^40");
  if (inherited != 0 && inherited != 1) return fail(error, "inherited", inherited, "0 or 1");
  if (e->input_count < 0 || e->input_count > DFLASH_STAGE_INPUTS)
    return fail(error, "inputs", e->input_count, "0 to 5");
  return check_sizes(e, stage, error);
}

static void hash_line(DflashSha256 *hash, const char *name, const char *value) {
  dflash_sha256_update(hash, name, strlen(name) + 1);
  dflash_sha256_update(hash, value, strlen(value) + 1);
}

static void hash_number(DflashSha256 *hash, const char *name, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%" PRId64, value);
  hash_line(hash, name, text);
}

static void hash_real(DflashSha256 *hash, const char *name, double value) {
  uint64_t bits;
  char text[32];
  memcpy(&bits, &value, sizeof bits);
  snprintf(text, sizeof text, "%016" PRIx64, bits);
  hash_line(hash, name, text);
}

static void hash_geometry(DflashSha256 *hash, const DflashGeometry *geometry) {
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    const char *place = (const char *)geometry + field->offset;
    const DflashList *list = (const DflashList *)(const void *)place;
    if (field->kind == DFLASH_FIELD_I64) hash_number(hash, field->name, *(const int64_t *)(const void *)place);
    if (field->kind == DFLASH_FIELD_F64) hash_real(hash, field->name, *(const double *)(const void *)place);
    if (field->kind != DFLASH_FIELD_LIST) continue;
    hash_number(hash, field->name, list->count);
    for (int64_t k = 0; k < list->count; k++) hash_number(hash, "", list->at[k]);
  }
}

static void hash_values(DflashSha256 *hash, const char *name, int64_t rows, int64_t width, const float *data) {
  hash_number(hash, name, rows);
  hash_number(hash, "", width);
  if (data != NULL) dflash_sha256_update(hash, data, (size_t)(rows * width) * sizeof *data);
}

void dflash_dump_hash(DflashSha256 *hash, const DflashDumpEntry *e) {
  hash_geometry(hash, e->geometry);
  for (int i = 0; i < DFLASH_DUMP_TEXTS; i++) hash_line(hash, dflash_dump_texts[i], e->texts[i]);
  for (int i = 0; i < DFLASH_DUMP_NUMBERS; i++) hash_number(hash, dflash_dump_numbers[i], e->numbers[i]);
  hash_real(hash, "score", e->score);
  hash_real(hash, "lambda", e->lambda);
  hash_values(hash, "got", e->rows, e->width, e->got);
  hash_values(hash, "expected", e->rows, e->width, e->expected);
  hash_values(hash, e->sigma != NULL ? "sigma" : "exact", e->rows, e->width, e->sigma);
  for (int i = 0; i < e->input_count; i++)
    hash_values(hash, e->inputs[i].source, e->inputs[i].rows, e->inputs[i].width, e->inputs[i].data);
}
