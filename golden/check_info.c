/* `golden info`: what is in a golden. One JSON object is built; the text is written from it. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "golden/check.h"
#include "model/geometry.h"
#include "model/storage.h"

static const char *const ATTRIBUTES[] = {"generator",   "note",        "trunk_hash64", "recipe",
                                         "inputs_hash", "values_hash", "scales_hash"};

/* ---- the object ---- */

static void count_weight(cJSON *storages, const DflashTensor *tensor) {
  if (!tensor->data) return;
  const char *name = dflash_storage_name(tensor->storage);
  cJSON *entry = cJSON_GetObjectItemCaseSensitive(storages, name);
  if (!entry) {
    entry = cJSON_AddObjectToObject(storages, name);
    cJSON_AddNumberToObject(entry, "tensors", 0);
    cJSON_AddNumberToObject(entry, "bytes", 0);
  }
  cJSON *tensors = cJSON_GetObjectItemCaseSensitive(entry, "tensors");
  cJSON *bytes = cJSON_GetObjectItemCaseSensitive(entry, "bytes");
  if (tensors) cJSON_SetNumberValue(tensors, tensors->valuedouble + 1);
  if (bytes) cJSON_SetNumberValue(bytes, bytes->valuedouble + (double)tensor->bytes);
}

static void add_weights(cJSON *info, const DflashGolden *golden) {
  const DflashGeometry *geometry = dflash_golden_geometry(golden);
  DflashWeightSet view = {.weights = *dflash_golden_weights(golden)};
  view.layers = (DflashLayerWeights *)(uintptr_t)view.weights.layers;
  cJSON *storages = cJSON_AddObjectToObject(info, "weights");
  for (int64_t i = 0; i < dflash_weight_count(geometry); i++)
    count_weight(storages, dflash_weight_at(geometry, &view, i));
  count_weight(storages, &view.weights.head);
  if (view.weights.head.data) cJSON_AddStringToObject(info, "head", dflash_storage_name(view.weights.head.storage));
}

/* Ranks of both subspaces, and how many rows with margins there are. */
static DflashStatus add_router(cJSON *info, const DflashGolden *golden, DflashError *error) {
  const DflashRouter *router = dflash_golden_router(golden);
  float *rows;
  double *margins;
  int64_t count;
  cJSON_AddBoolToObject(info, "router", router != NULL);
  if (!router) return DFLASH_OK;
  DflashStatus status = dflash_golden_router_rows(golden, &count, &rows, &margins, error);
  if (status != DFLASH_OK) return status;
  cJSON_AddNumberToObject(info, "router_block_rank", (double)router->block.rank);
  cJSON_AddNumberToObject(info, "router_chain_rank", (double)router->chain.rank);
  cJSON_AddNumberToObject(info, "router_rows", (double)count);
  free(rows);
  free(margins);
  return DFLASH_OK;
}

static int has_scales(const DflashCase *c) {
  for (int64_t i = 0; i < c->layers * DFLASH_STAGE_COUNT; i++)
    if (c->stages[i].alone && c->stages[i].chain) return 1;
  return 0;
}

static void add_case(cJSON *cases, const DflashCase *c) {
  cJSON *entry = cJSON_CreateObject();
  if (!cJSON_AddItemToArray(cases, entry)) return;
  cJSON_AddStringToObject(entry, "name", c->name);
  cJSON_AddNumberToObject(entry, "anchor_pos", (double)c->anchor_pos);
  cJSON_AddNumberToObject(entry, "anchor_token", (double)c->anchor_token);
  cJSON_AddNumberToObject(entry, "rows", (double)c->sizes.rows);
  cJSON_AddNumberToObject(entry, "n_draft", (double)c->sizes.n_draft);
  cJSON_AddNumberToObject(entry, "head_width", (double)c->sizes.head_width);
  cJSON_AddNumberToObject(entry, "operations", (double)c->op_count);
  cJSON_AddNumberToObject(entry, "context_first", (double)c->context_first);
  cJSON_AddNumberToObject(entry, "context_len", (double)c->sizes.context_len);
  cJSON_AddBoolToObject(entry, "exact", c->exact);
  cJSON_AddBoolToObject(entry, "scales", has_scales(c));
}

static DflashStatus add_cases(cJSON *info, DflashGolden *golden, DflashError *error) {
  cJSON *cases = cJSON_AddArrayToObject(info, "cases");
  for (int64_t i = 0; i < dflash_golden_case_count(golden); i++) {
    DflashCase c;
    DflashStatus status = dflash_golden_case(golden, i, &c, error);
    if (status != DFLASH_OK) return status;
    add_case(cases, &c);
    dflash_case_close(&c);
  }
  return DFLASH_OK;
}

static DflashStatus fill_info(cJSON *info, DflashGolden *golden, const char *path, DflashError *error) {
  cJSON_AddStringToObject(info, "file", path);
  for (size_t i = 0; i < sizeof ATTRIBUTES / sizeof *ATTRIBUTES; i++) {
    const char *text = dflash_golden_attribute(golden, ATTRIBUTES[i]);
    if (*text) cJSON_AddStringToObject(info, ATTRIBUTES[i], text);
  }
  cJSON_AddItemToObject(info, "geometry", dflash_geometry_to_json(dflash_golden_geometry(golden)));
  add_weights(info, golden);
  DflashStatus status = add_router(info, golden, error);
  return status == DFLASH_OK ? add_cases(info, golden, error) : status;
}

/* ---- text ---- */

static void print_values(FILE *out, const cJSON *object) {
  const cJSON *item;
  cJSON_ArrayForEach(item, object) {
    char *value = cJSON_PrintUnformatted(item);
    fprintf(out, "  %-16s %s\n", item->string, value ? value : "?");
    free(value);
  }
}

static double number(const cJSON *object, const char *name) {
  return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static int truth(const cJSON *object, const char *name) {
  return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static const char *plural(double count) { return count == 1 ? "" : "s"; }

static void print_cases(FILE *out, const cJSON *cases) {
  const cJSON *c;
  cJSON_ArrayForEach(c, cases) {
    double drafts = number(c, "n_draft"), operations = number(c, "operations"), first = number(c, "context_first");
    fprintf(out, "  %-16s anchor %.0f, %.0f rows, %.0f draft%s of %.0f tokens; ",
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c, "name")), number(c, "anchor_pos"),
            number(c, "rows"), drafts, plural(drafts), number(c, "head_width"));
    fprintf(out, "%.0f operation%s %.0f .. %.0f%s%s\n", operations, operations == 1 ? " leaves" : "s leave", first,
            first + number(c, "context_len"), truth(c, "exact") ? "; exact data" : "",
            truth(c, "scales") ? "" : "; no error scales");
  }
}

static void print_weights(FILE *out, const cJSON *weights) {
  const cJSON *storage;
  cJSON_ArrayForEach(storage, weights) {
    double tensors = number(storage, "tensors"), bytes = number(storage, "bytes");
    fprintf(out, "  %-16s %.0f tensor%s, %.0f byte%s\n", storage->string, tensors, plural(tensors), bytes,
            plural(bytes));
  }
}

static void print_router(FILE *out, const cJSON *info) {
  double rows = number(info, "router_rows");
  if (truth(info, "router"))
    fprintf(out, "router: rank %.0f for block, %.0f for chain; %.0f row%s with margins\n",
            number(info, "router_block_rank"), number(info, "router_chain_rank"), rows, plural(rows));
  else
    fprintf(out, "router: none\n");
}

static void print_info(FILE *out, const cJSON *info) {
  fprintf(out, "%s\n", cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(info, "file")));
  for (size_t i = 0; i < sizeof ATTRIBUTES / sizeof *ATTRIBUTES; i++) {
    char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(info, ATTRIBUTES[i]));
    if (!text) continue;
    dflash_text_clean(text);
    fprintf(out, "  %-16s %s\n", ATTRIBUTES[i], text);
  }
  fprintf(out, "geometry\n");
  print_values(out, cJSON_GetObjectItemCaseSensitive(info, "geometry"));
  fprintf(out, "weights\n");
  print_weights(out, cJSON_GetObjectItemCaseSensitive(info, "weights"));
  print_router(out, info);
  fprintf(out, "cases\n");
  print_cases(out, cJSON_GetObjectItemCaseSensitive(info, "cases"));
}

static DflashStatus print_json(FILE *out, const cJSON *info, DflashError *error) {
  char *text = cJSON_Print(info);
  if (!text) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the answer");
  fprintf(out, "%s\n", text);
  free(text);
  return DFLASH_OK;
}

DflashStatus dflash_golden_info(DflashGolden *golden, const char *path, int json, FILE *out, DflashError *error) {
  cJSON *info = cJSON_CreateObject();
  if (!info) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the answer");
  DflashStatus status = fill_info(info, golden, path, error);
  if (status == DFLASH_OK && json) status = print_json(out, info, error);
  if (status == DFLASH_OK && !json) print_info(out, info);
  cJSON_Delete(info);
  return status;
}
