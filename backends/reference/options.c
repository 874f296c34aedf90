#include "reference.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { THREADS_MAX = 256 };

static DflashStatus read_option(const DflashOption *option, int *threads, DflashError *error) {
  if (option->key == NULL || option->value == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: an option without key or value");
  if (strcmp(option->key, "threads") != 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: no option \"%s\"; known: threads", option->key);
  int64_t value;
  if (!dflash_parse_i64(option->value, &value) || value < 1 || value > THREADS_MAX)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: threads is \"%s\", valid is 1 to %d",
                            option->value, THREADS_MAX);
  *threads = (int)value;
  return DFLASH_OK;
}

DflashStatus reference_options_check(const DflashModelDesc *desc, int *threads, DflashError *error) {
  *threads = 1;
  DflashStatus status = DFLASH_OK;
  if (desc->option_count > 0) status = reference_check_pointer("options", desc->options, error);
  for (uint32_t i = 0; status == DFLASH_OK && i < desc->option_count; i++)
    status = read_option(&desc->options[i], threads, error);
  return status;
}
