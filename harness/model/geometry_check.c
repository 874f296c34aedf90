/* Every refusal of a geometry: fields, what relates them, then products (geometry_product.c). */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "model/geometry.h"
#include "model/geometry_product.h"

/* "geometry: hidden is 0; valid: at least 1" */
__attribute__((format(printf, 4, 5))) static DflashStatus refuse(DflashError *error, const char *field, int64_t value,
                                                                 const char *valid, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, valid);
  vsnprintf(text, sizeof text, valid, arguments);
  va_end(arguments);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry: %s is %" PRId64 "; valid: %s", field, value, text);
}

static DflashStatus check_positive(const DflashGeometry *g, DflashError *error) {
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    if (field->kind != DFLASH_FIELD_I64) continue;
    const int64_t *value = (const int64_t *)(const void *)((const char *)g + field->offset);
    int least = value == &g->window || value == &g->mask_token ? 0 : 1;
    if (*value < least) return refuse(error, field->name, *value, "at least %d", least);
  }
  return DFLASH_OK;
}

static DflashStatus check_relations(const DflashGeometry *g, DflashError *error) {
  if (g->layers > DFLASH_LIST_MAX) return refuse(error, "layers", g->layers, "1 to %d", DFLASH_LIST_MAX);
  if (g->block < 2) return refuse(error, "block", g->block, "at least 2, the anchor and one draft");
  if (g->heads % g->kv_heads)
    return refuse(error, "heads", g->heads, "a multiple of kv_heads (%" PRId64 ")", g->kv_heads);
  if (g->head_dim % 2) return refuse(error, "head_dim", g->head_dim, "an even number");
  if (g->hidden % g->conv_group)
    return refuse(error, "hidden", g->hidden, "a multiple of conv_group (%" PRId64 ")", g->conv_group);
  if (g->mask_token >= g->vocab)
    return refuse(error, "mask_token", g->mask_token, "below vocab (%" PRId64 ")", g->vocab);
  if (g->selector_top > g->vocab)
    return refuse(error, "selector_top", g->selector_top, "at most vocab (%" PRId64 ")", g->vocab);
  return DFLASH_OK;
}

/* Entries must be at least 0 and below `limit`. */
static DflashStatus check_list(const DflashList *list, const char *name, int64_t limit, const char *limit_name,
                               DflashError *error) {
  if (list->count < 0 || list->count > DFLASH_LIST_MAX)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry: %s has %" PRId64 " entries; valid: 0 to %d", name,
                            list->count, DFLASH_LIST_MAX);
  for (int64_t i = 0; i < list->count; i++) {
    if (list->at[i] >= 0 && list->at[i] < limit) continue;
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "geometry: %s[%" PRId64 "] is %" PRId64 "; valid: 0 or more, below %s (%" PRId64 ")", name,
                            i, list->at[i], limit_name, limit);
  }
  return DFLASH_OK;
}

static DflashStatus check_lists(const DflashGeometry *g, DflashError *error) {
  DflashStatus status = check_list(&g->taps, "taps", g->target_layers, "target_layers", error);
  if (status == DFLASH_OK) status = check_list(&g->no_rope, "no_rope", g->layers, "layers", error);
  if (status == DFLASH_OK) status = check_list(&g->windows, "windows", INT64_MAX, "2^63 - 1", error);
  if (status != DFLASH_OK) return status;
  if (g->taps.count == 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry: taps is empty; valid: 1 to %d target layers",
                            DFLASH_LIST_MAX);
  if (g->windows.count != 0 && g->windows.count != g->layers)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "geometry: windows has %" PRId64 " entries; valid: none, or one a layer (%" PRId64 ")",
                            g->windows.count, g->layers);
  return DFLASH_OK;
}

static DflashStatus check_real(const char *name, double value, DflashError *error) {
  if (isfinite(value) && value > 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry: %s is %g; valid: finite and above 0", name, value);
}

/* A rope_theta below 1 makes frequencies grow; the last one must still be an f32. */
static DflashStatus check_rotation(const DflashGeometry *g, DflashError *error) {
  double head_dim = (double)g->head_dim;
  if (pow(g->rope_theta, (2 - head_dim) / head_dim) <= FLT_MAX) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "geometry: rope_theta is %g; valid: one whose frequencies are finite in f32", g->rope_theta);
}

DflashStatus dflash_geometry_check(const DflashGeometry *geometry, DflashError *error) {
  DflashStatus status = check_positive(geometry, error);
  if (status == DFLASH_OK) status = check_relations(geometry, error);
  if (status == DFLASH_OK) status = check_lists(geometry, error);
  if (status == DFLASH_OK) status = check_real("rope_theta", geometry->rope_theta, error);
  if (status == DFLASH_OK) status = check_real("eps", geometry->eps, error);
  if (status == DFLASH_OK) status = check_rotation(geometry, error);
  if (status == DFLASH_OK) status = dflash_geometry_products(geometry, error);
  return status;
}
