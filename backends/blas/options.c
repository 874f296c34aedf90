#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "pages.h"

enum { THREADS_MAX = 1024 };

static bool parse_threads(const char *value, DflashHostOptions *options) {
  int64_t threads;
  if (!dflash_parse_i64(value, &threads) || threads < 1 || threads > THREADS_MAX) return false;
  options->threads = (int)threads;
  return true;
}

static bool parse_form(const char *value, DflashHostOptions *options) {
  static const char *const names[] = {"auto", "f32", "stored"};
  for (int i = 0; i < 3; i++)
    if (strcmp(value, names[i]) == 0) {
      options->form = i;
      return true;
    }
  return false;
}

static bool parse_memory(const char *value, DflashHostOptions *options) {
  double share;
  int64_t bytes;
  if (dflash_parse_i64(value, &bytes) && bytes > 0)
    options->memory = (uint64_t)bytes;
  else if (dflash_parse_share(value, &share))
    options->memory = (uint64_t)(share * (double)dflash_memory_available());
  else
    return false;
  return true;
}

static bool parse_keep(const char *value, DflashHostOptions *options) {
  options->keep_all = strcmp(value, "all") == 0;
  return options->keep_all || strcmp(value, "window") == 0;
}

static bool parse_kernel(const char *value, DflashHostOptions *options) {
  options->kernel = dflash_kernel_find(value);
  return options->kernel != NULL;
}

static const struct {
  const char *key, *values;
  bool (*parse)(const char *value, DflashHostOptions *options);
} KEYS[] = {
    {"threads", "1 to 1024", parse_threads},
    {"form", "auto, f32 or stored", parse_form},
    {"memory", "bytes, or a share such as 50%", parse_memory},
    {"keep", "window or all", parse_keep},
    {"kernel", "auto, or one that this processor runs: avx512, avx2, plain", parse_kernel},
};

static DflashStatus parse_option(const DflashOption *option, DflashHostOptions *options, DflashError *error) {
  const char *key = option->key ? option->key : "", *value = option->value ? option->value : "";
  for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
    if (strcmp(key, KEYS[i].key) != 0) continue;
    if (KEYS[i].parse(value, options)) return DFLASH_OK;
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: option %s is '%s', expected %s", key, value,
                            KEYS[i].values);
  }
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "blas: unknown option '%s'; known are threads, form, memory, keep, kernel", key);
}

DflashStatus dflash_options_parse(const DflashModelDesc *desc, DflashHostOptions *options, DflashError *error) {
  const uint64_t available = dflash_memory_available();
  *options = (DflashHostOptions){.threads = dflash_cpu_count(),
                                 .memory = available ? available / 10 * 9 : UINT64_MAX,
                                 .kernel = dflash_kernel_find("auto")};
  for (uint32_t i = 0; i < desc->option_count; i++) {
    DflashStatus status = parse_option(&desc->options[i], options, error);
    if (status) return status;
  }
  return DFLASH_OK;
}
