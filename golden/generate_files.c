#include "golden/generate_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "model/cmf.h"

enum { BEGINNING = 9 }; /* safetensors: the header's length in 8 bytes, then its '{' */

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* The first bytes of a regular file; fewer when it is short, 0 when it cannot be read, which opening it explains. */
static size_t read_beginning(const char *path, char bytes[BEGINNING]) {
  struct stat about;
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
  FILE *file = fopen(path, "rbe");
  size_t size = file ? fread(bytes, 1, BEGINNING, file) : 0;
  if (file) fclose(file);
  return size;
}

/* ---- weights ---- */

static bool has_config(const char *folder) {
  char *path = NULL;
  if (asprintf(&path, "%s/config.json", folder) < 0) return true; /* opening it runs out of memory too */
  bool found = access(path, F_OK) == 0;
  free(path);
  return found;
}

/* Something else than weights is called so, not a damaged sidecar. */
static DflashStatus check_place(const char *path, DflashError *error) {
  char bytes[BEGINNING];
  size_t size = read_beginning(path, bytes);
  if (is_folder(path) ? has_config(path) : size == 0 || dflash_cmf_is(bytes, size)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "%s: neither a sidecar (.dflash.cmf) nor a checkpoint folder (config.json and safetensors)",
                          path);
}

static DflashStatus open_weights(DflashMaterial *m, const char *path, DflashError *error) {
  int folder = is_folder(path);
  DflashStatus status = check_place(path, error);
  if (status != DFLASH_OK) return status;
  status = folder ? dflash_checkpoint_open(path, &m->checkpoint, error) : dflash_sidecar_open(path, &m->sidecar, error);
  if (status != DFLASH_OK) return status;
  m->has_checkpoint = folder;
  m->has_sidecar = !folder;
  m->geometry = folder ? m->checkpoint.geometry : m->sidecar.geometry;
  m->weights = folder ? m->checkpoint.set.weights : m->sidecar.set.weights;
  return DFLASH_OK;
}

/* ---- the target's hash ---- */

/* The digits that count of a hash as people write it: "0x" and leading zeros do not. NULL when it is none. */
static const char *hash_digits(const char *text) {
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) text += 2;
  size_t size = strlen(text);
  if (size < 1 || size > 64 || strspn(text, "0123456789abcdefABCDEF") != size) return NULL;
  return text + strspn(text, "0");
}

/* Weights of one target say nothing about another: the user may name the one that he means. */
static DflashStatus check_target(const DflashMaterial *m, const DflashRecipe *recipe, DflashError *error) {
  const char *wanted = recipe->target_hash, *named = m->sidecar.trunk_hash64;
  if (!wanted) return DFLASH_OK;
  if (!hash_digits(wanted))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "target hash '%.80s' is not 1 to 64 hex digits", wanted);
  if (!m->has_sidecar)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "target hash %s: only a sidecar names its target, and these weights are %s", wanted,
                            m->has_checkpoint ? "a checkpoint's" : "drawn");
  if (!*named)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "%s: names no target (base_binding.trunk_hash64 is absent), expected %s",
                            recipe->weights_path, wanted);
  if (strcasecmp(hash_digits(named), hash_digits(wanted)) == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: belongs to the target with trunk_hash64 %s, expected %s",
                          recipe->weights_path, named, wanted);
}

DflashStatus dflash_material_open_weights(DflashMaterial *m, const DflashRecipe *recipe, DflashError *error) {
  m->geometry = recipe->geometry;
  DflashStatus status = recipe->weights_path ? open_weights(m, recipe->weights_path, error) : DFLASH_OK;
  if (status == DFLASH_OK) status = check_target(m, recipe, error);
  if (status != DFLASH_OK) return status;
  if (recipe->geometry.hidden == 0 || dflash_geometry_equal(&recipe->geometry, &m->geometry)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: its geometry is not the recipe's", recipe->weights_path);
}

/* ---- the head ---- */

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text), length = strlen(end);
  return size >= length && strcmp(text + size - length, end) == 0;
}

/* Anything but CMF is read as safetensors, whose first complaint about another file is a senseless length. */
static DflashStatus check_head_file(const char *path, DflashError *error) {
  char bytes[BEGINNING];
  size_t size = read_beginning(path, bytes);
  if (size == 0 || dflash_cmf_is(bytes, size) || ends_with(path, ".index.json")) return DFLASH_OK;
  if (size == BEGINNING && bytes[BEGINNING - 1] == '{') return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: neither a CMF file nor safetensors", path);
}

DflashStatus dflash_material_open_head(DflashMaterial *m, const DflashRecipe *recipe, DflashError *error) {
  if (!recipe->head_path) return DFLASH_OK;
  DflashStatus status = check_head_file(recipe->head_path, error);
  if (status == DFLASH_OK) status = dflash_head_open(recipe->head_path, &m->geometry, &m->head, error);
  m->has_head = status == DFLASH_OK;
  return status;
}
