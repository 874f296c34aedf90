/* What --option sets for this backend. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "model.h"

const char cuda_options_text[] =
    "keep=window|all (window), path=auto|plain|fast (auto), splits=N of the context, 0 to 63 (0: by the device)";

enum { MOST_SPLITS = CUDA_MOST_PARTS - 1 };
_Static_assert(MOST_SPLITS == 63, "the texts here");

static bool parse_keep(const char *value, CudaOptions *options) {
  options->keep_all = strcmp(value, "all") == 0;
  return options->keep_all || strcmp(value, "window") == 0;
}

static bool parse_path(const char *value, CudaOptions *options) {
  static const char *const names[] = {
      [CUDA_PATH_AUTO] = "auto", [CUDA_PATH_PLAIN] = "plain", [CUDA_PATH_FAST] = "fast"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    options->path = (int32_t)i;
    if (strcmp(value, names[i]) == 0) return true;
  }
  return false;
}

static bool parse_splits(const char *value, CudaOptions *options) {
  int64_t count;
  if (!dflash_parse_i64(value, &count) || count < 0 || count > MOST_SPLITS) return false;
  options->splits = (int32_t)count;
  return true;
}

static const struct {
  const char *key, *values;
  bool (*parse)(const char *value, CudaOptions *options);
} keys[] = {
    {"keep", "window or all", parse_keep},
    {"path", "auto, plain or fast", parse_path},
    {"splits", "0 to 63", parse_splits},
};

static DflashStatus read_option(const DflashOption *option, CudaOptions *options, DflashError *error) {
  const char *key = option->key ? option->key : "", *value = option->value ? option->value : "";
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (strcmp(key, keys[i].key) != 0) continue;
    if (keys[i].parse(value, options)) return DFLASH_OK;
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: option %s is \"%s\", valid is %s", key, value,
                            keys[i].values);
  }
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: no option \"%s\"; known: %s", key, cuda_options_text);
}

DflashStatus cuda_options_read(const DflashModelDesc *desc, CudaOptions *options, DflashError *error) {
  *options = (CudaOptions){0};
  if (desc->option_count > 0 && !desc->options)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %u options, and none are given", desc->option_count);
  for (uint32_t i = 0; i < desc->option_count; i++) {
    DflashStatus status = read_option(&desc->options[i], options, error);
    if (status) return status;
  }
  return DFLASH_OK;
}
