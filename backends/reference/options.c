#include "reference.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { THREADS_MAX = 256 };

static const char *const order_names[REFERENCE_ORDER_COUNT] = {"forward", "backward",  "pairwise",
                                                               "lanes16", "blocks128", "split3"};

const char *reference_order_name(int order) { return order_names[order]; }

static bool read_threads(const char *value, Options *options) {
  int64_t threads;
  if (!dflash_parse_i64(value, &threads) || threads < 1 || threads > THREADS_MAX) return false;
  options->threads = (int)threads;
  return true;
}

static bool read_order(const char *value, Options *options) {
  for (int order = 0; order < REFERENCE_ORDER_COUNT; order++)
    if (strcmp(value, order_names[order]) == 0) {
      options->sums.order = order;
      return true;
    }
  return false;
}

static bool read_fma(const char *value, Options *options) {
  options->sums.fused = strcmp(value, "1") == 0;
  return options->sums.fused || strcmp(value, "0") == 0;
}

static bool read_terms(const char *value, Options *options) {
  options->apart = strcmp(value, "apart") == 0;
  return options->apart || strcmp(value, "plain") == 0;
}

static const struct {
  const char *key, *values;
  bool (*read)(const char *value, Options *options);
} keys[] = {
    {"threads", "1 to 256", read_threads},
    {"order", "forward, backward, pairwise, lanes16, blocks128 or split3", read_order},
    {"fma", "0 or 1", read_fma},
    {"terms", "plain or apart", read_terms},
};

static DflashStatus read_option(const DflashOption *option, Options *options, DflashError *error) {
  if (option->key == NULL || option->value == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: an option without key or value");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (strcmp(option->key, keys[i].key) != 0) continue;
    if (keys[i].read(option->value, options)) return DFLASH_OK;
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: %s is \"%s\", valid is %s", keys[i].key,
                            option->value, keys[i].values);
  }
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "reference: no option \"%s\"; known: threads, order, fma, terms", option->key);
}

DflashStatus reference_options_check(const DflashModelDesc *desc, Options *options, DflashError *error) {
  *options = (Options){.threads = 1};
  DflashStatus status = DFLASH_OK;
  if (desc->option_count > 0) status = reference_check_pointer("options", desc->options, error);
  for (uint32_t i = 0; status == DFLASH_OK && i < desc->option_count; i++)
    status = read_option(&desc->options[i], options, error);
  return status;
}
