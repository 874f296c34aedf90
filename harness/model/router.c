#include "model/router.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/base64.h"
#include "model/json.h"
#include "model/storage.h"

static bool all_finite(const uint16_t *bits, size_t count) {
  for (size_t i = 0; i < count; i++)
    if ((bits[i] & 0x7c00) == 0x7c00) return false;
  return true;
}

/* The f16 array under `key`. Memory is taken only once the text is known to have the right length. */
static DflashStatus read_array(const cJSON *object, const char *key, size_t count, uint16_t **array,
                               DflashError *error) {
  const char *text = dflash_json_text(object, key);
  size_t length = text == NULL ? 0 : strlen(text);
  if (text == NULL || length != dflash_base64_length(2 * count))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s has %zu characters, expected %zu of base64 for %zu f16",
                            key, length, dflash_base64_length(2 * count), count);
  *array = dflash_alloc(count, sizeof **array);
  if (*array == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: out of memory", key);
  if (!dflash_base64_decode(text, length, *array, 2 * count))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is not base64", key);
  if (!all_finite(*array, count))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s holds a value that is not finite", key);
  return DFLASH_OK;
}

static DflashStatus read_numbers(const cJSON *object, int64_t hidden, DflashSubspace *subspace, DflashError *error) {
  const char *metric = dflash_json_text(object, "metric");
  if (metric == NULL || strcmp(metric, "mse_unit") != 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "metric is %.32s, expected mse_unit",
                            metric == NULL ? "absent" : metric);
  int64_t layer, rank;
  if (!dflash_json_integer(dflash_json_get(object, "phi_layer"), &layer) || layer < 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "phi_layer is no layer number");
  if (!dflash_json_integer(dflash_json_get(object, "rank"), &rank) || rank < 1 || rank > hidden)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "rank is not in 1 to %lld", (long long)hidden);
  subspace->phi_layer = layer;
  subspace->rank = rank;
  return DFLASH_OK;
}

static DflashStatus read_subspace(const cJSON *route, const char *key, int64_t hidden, DflashSubspace *subspace,
                                  DflashError *error) {
  const cJSON *object = dflash_json_get(route, key);
  int64_t elements;
  if (!cJSON_IsObject(object)) return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is no object", key);
  DflashStatus status = read_numbers(object, hidden, subspace, error);
  if (status == DFLASH_OK && (!dflash_mul_i64(subspace->rank, hidden, &elements) || elements > INT64_MAX / 4))
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "rank of %lld overflows", (long long)subspace->rank);
  if (status == DFLASH_OK) status = read_array(object, "mean", (size_t)hidden, &subspace->mean, error);
  if (status == DFLASH_OK) status = read_array(object, "basis", (size_t)elements, &subspace->basis, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s", key);
  return status;
}

DflashStatus dflash_router_from_json(const cJSON *route, int64_t hidden, DflashRouter *router, DflashError *error) {
  *router = (DflashRouter){.hidden = hidden};
  if (hidden < 1 || hidden > INT64_MAX / 4)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "hidden is %lld", (long long)hidden);
  DflashStatus status = read_subspace(route, "block", hidden, &router->block, error);
  if (status == DFLASH_OK) status = read_subspace(route, "chain", hidden, &router->chain, error);
  if (status == DFLASH_OK)
    router->present = 1;
  else
    dflash_router_close(router);
  return status;
}

void dflash_router_close(DflashRouter *router) {
  DflashSubspace *subspaces[2] = {&router->block, &router->chain};
  for (int i = 0; i < 2; i++) {
    free(subspaces[i]->mean);
    free(subspaces[i]->basis);
  }
  *router = (DflashRouter){0};
}

static bool add_array(cJSON *object, const char *key, const uint16_t *array, size_t count) {
  char *text = dflash_alloc(dflash_base64_length(2 * count) + 1, 1);
  if (text != NULL) dflash_base64_encode(array, 2 * count, text);
  bool added = text != NULL && cJSON_AddStringToObject(object, key, text) != NULL;
  free(text);
  return added;
}

static bool add_subspace(cJSON *route, const char *key, const DflashSubspace *subspace, int64_t hidden) {
  cJSON *object = cJSON_AddObjectToObject(route, key);
  return object != NULL && cJSON_AddStringToObject(object, "metric", "mse_unit") != NULL &&
         cJSON_AddNumberToObject(object, "phi_layer", (double)subspace->phi_layer) != NULL &&
         add_array(object, "mean", subspace->mean, (size_t)hidden) &&
         add_array(object, "basis", subspace->basis, (size_t)(subspace->rank * hidden)) &&
         cJSON_AddNumberToObject(object, "rank", (double)subspace->rank) != NULL;
}

cJSON *dflash_router_to_json(const DflashRouter *router) {
  cJSON *route = cJSON_CreateObject();
  if (route == NULL) return NULL;
  if (add_subspace(route, "block", &router->block, router->hidden) &&
      add_subspace(route, "chain", &router->chain, router->hidden))
    return route;
  cJSON_Delete(route);
  return NULL;
}

/* Element i of the row at length 1, from the subspace's mean. */
static double offset_at(const DflashSubspace *subspace, const float *row, double length, int64_t i) {
  return row[i] / length - (double)dflash_f16_value(subspace->mean[i]);
}

static double squared_error(const DflashSubspace *subspace, int64_t hidden, const float *row, double length) {
  double error = 0;
  for (int64_t i = 0; i < hidden; i++) {
    double offset = offset_at(subspace, row, length, i);
    error += offset * offset;
  }
  for (int64_t k = 0; k < subspace->rank; k++) {
    const uint16_t *basis = subspace->basis + k * hidden;
    double along = 0;
    for (int64_t i = 0; i < hidden; i++)
      along += (double)dflash_f16_value(basis[i]) * offset_at(subspace, row, length, i);
    error -= along * along;
  }
  return error < 0 ? 0 : error; /* NaN stays */
}

double dflash_router_margin(const DflashRouter *router, const float *row) {
  double sum = 0;
  for (int64_t i = 0; i < router->hidden; i++) sum += (double)row[i] * row[i];
  double length = sqrt(sum) < 1e-12 ? 1e-12 : sqrt(sum);
  return squared_error(&router->chain, router->hidden, row, length) -
         squared_error(&router->block, router->hidden, row, length);
}
