/* Geometry: validation, fields by name, JSON as in a sidecar's header. */
#ifndef DFLASH_MODEL_GEOMETRY_H
#define DFLASH_MODEL_GEOMETRY_H

#include <stddef.h>

#include "dflash/geometry.h"
#include "dflash/status.h"

struct cJSON;

/* Refuses with DFLASH_INVALID_DATA, naming the field, its value and what is valid, when: a size is 0 or
 * negative (window, mask_token and the entries of windows, no_rope and taps may be 0); block < 2; taps is
 * empty; heads % kv_heads; head_dim odd; hidden % conv_group; windows neither empty nor `layers` long; a
 * negative window; a no_rope entry >= layers; a tap >= target_layers; mask_token >= vocab;
 * selector_top > vocab; eps or rope_theta not finite and positive; a rotation frequency infinite in f32; a
 * product of sizes overflows 63 bits (any tensor's bytes as f32, any stage's bytes, tap_width, the sum of all
 * weights); layers > DFLASH_LIST_MAX. */
DflashStatus dflash_geometry_check(const DflashGeometry *geometry, DflashError *error);

/* Scalar and list fields by name, for --set, attributes and JSON. Index 0 .. dflash_geometry_field_count() - 1. */
enum { DFLASH_FIELD_I64, DFLASH_FIELD_F64, DFLASH_FIELD_LIST };
typedef struct DflashField {
  const char *name;
  int kind;
  size_t offset;     /* into DflashGeometry */
  int may_be_absent; /* windows, no_rope: absent means empty */
} DflashField;
size_t dflash_geometry_field_count(void);
const DflashField *dflash_geometry_field(size_t index);

/* Sets a field from text ("5120", "1e7", "5,19,33", "" for an empty list). An unknown name lists the known ones. */
DflashStatus dflash_geometry_set(DflashGeometry *geometry, const char *name, const char *value, DflashError *error);

/* From a JSON object whose keys are the field names; unknown keys are ignored; checked. Integers must be
 * exact integers. */
DflashStatus dflash_geometry_from_json(const struct cJSON *object, DflashGeometry *geometry, DflashError *error);
struct cJSON *dflash_geometry_to_json(const DflashGeometry *geometry); /* NULL: memory; empty lists left out */

int dflash_geometry_equal(const DflashGeometry *a, const DflashGeometry *b);

/* inv_freq[i] = f32(rope_theta^(-2i/head_dim)), computed in f64 and rounded once; [head_dim / 2]. */
void dflash_geometry_inv_freq(const DflashGeometry *geometry, float *inv_freq);

/* Published geometries: "qwen3.8-27b", "narrow-0.3b", and the small ones of this project "small", "tiny".
 * Index 0 .. count - 1. */
typedef struct DflashPreset {
  const char *name, *about;
  DflashGeometry geometry;
} DflashPreset;
size_t dflash_preset_count(void);
const DflashPreset *dflash_preset(size_t index);

#endif
