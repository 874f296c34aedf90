#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"

static const Fault none;
static const Fault *const lists[] = {faults_lawful,  faults_matrix,    faults_storage, faults_norm, faults_rotate,
                                     faults_context, faults_attention, faults_conv,    faults_mlp,  faults_head,
                                     faults_select,  faults_memory,    faults_time,    NULL};

const Fault *fault_at(size_t index) {
  for (const Fault *const *list = lists; *list != NULL; list++)
    for (const Fault *fault = *list; fault->defect.id != NULL; fault++)
      if (index-- == 0) return fault;
  return NULL;
}

const Fault *fault_find(const char *id) {
  if (*id == '\0') return &none;
  const Fault *fault;
  for (size_t i = 0; (fault = fault_at(i)) != NULL; i++)
    if (strcmp(fault->defect.id, id) == 0) return fault;
  return NULL;
}

/* Letters to insert, delete or replace that turn one text into the other; both are cut at MOST letters. */
static size_t distance(const char *a, const char *b) {
  enum { MOST = 63 };
  size_t row[MOST + 1];
  const size_t length = strnlen(b, MOST);
  for (size_t j = 0; j <= length; j++) row[j] = j;
  for (size_t i = 0; i < MOST && a[i] != '\0'; i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < length; j++) {
      const size_t replaced = diagonal + (a[i] != b[j]), least = row[j] < row[j + 1] ? row[j] : row[j + 1];
      diagonal = row[j + 1];
      row[j + 1] = replaced < least + 1 ? replaced : least + 1;
    }
  }
  return row[length];
}

enum { SHOWN = 4 };

/* The ids nearest to the wanted one, the nearest first; of equals the first in the catalogue. The number of all ids. */
static size_t find_close(const char *wanted, const char *close[SHOWN]) {
  size_t distances[SHOWN], count = 0;
  const Fault *fault;
  for (; (fault = fault_at(count)) != NULL; count++) {
    const size_t own = distance(fault->defect.id, wanted);
    size_t at = count < SHOWN ? count : SHOWN;
    for (; at > 0 && own < distances[at - 1]; at--) {
      if (at == SHOWN) continue;
      distances[at] = distances[at - 1];
      close[at] = close[at - 1];
    }
    if (at == SHOWN) continue;
    distances[at] = own;
    close[at] = fault->defect.id;
  }
  return count;
}

static DflashStatus unknown_defect(const char *wanted, DflashError *error) {
  const char *close[SHOWN] = {"", "", "", ""};
  const size_t count = find_close(wanted, close);
  return dflash_error_set(
      error, DFLASH_INVALID_ARGUMENT,
      "faulty: no defect \"%s\"; close: %s, %s, %s, %s; `dflash-harness selftest --list` shows all %zu", wanted,
      close[0], close[1], close[2], close[3], count);
}

static DflashStatus bad_value(const char *key, const char *value, const char *valid, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s is \"%s\"; valid: %s", key, value, valid);
}

/* STAGE:FACTOR, to see whether a slowdown is found. */
static DflashStatus read_slow(const char *value, FaultOptions *options, DflashError *error) {
  const char *colon = strchr(value, ':');
  char name[64], *end = NULL;
  snprintf(name, sizeof name, "%.*s", colon != NULL ? (int)(colon - value) : 0, value);
  options->slow_stage = dflash_stage_find(name);
  options->slow_by = colon != NULL ? strtod(colon + 1, &end) : 0;
  const bool valid =
      end != NULL && end != colon + 1 && *end == '\0' && options->slow_by >= 1 && options->slow_by <= 100;
  if (valid && options->slow_stage != DFLASH_STAGE_NONE) return DFLASH_OK;
  return bad_value("slow", value, "STAGE:FACTOR, a stage of the block and a factor from 1 to 100", error);
}

static DflashStatus read_option(const DflashOption *option, FaultOptions *options, DflashError *error) {
  if (option->key == NULL || option->value == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: an option without key or value");
  if (strcmp(option->key, "defect") == 0) {
    options->fault = fault_find(option->value);
    return options->fault != NULL ? DFLASH_OK : unknown_defect(option->value, error);
  }
  if (strcmp(option->key, "expose") == 0) {
    options->expose_end = strcmp(option->value, "end") == 0;
    return options->expose_end || strcmp(option->value, "all") == 0
               ? DFLASH_OK
               : bad_value("expose", option->value, "all, end", error);
  }
  if (strcmp(option->key, "slow") == 0) return read_slow(option->value, options, error);
  if (strcmp(option->key, "base") == 0) {
    options->base = option->value;
    const bool valid = strcmp(option->value, "reference") == 0 || strcmp(option->value, "blas") == 0;
    return valid ? DFLASH_OK : bad_value("base", option->value, "reference, blas", error);
  }
  options->passed[options->passed_count++] = *option;
  return DFLASH_OK;
}

DflashStatus fault_options_parse(const DflashModelDesc *desc, FaultOptions *options, DflashError *error) {
  *options = (FaultOptions){.base = FAULT_BASE_DEFAULT, .fault = &none, .slow_stage = DFLASH_STAGE_NONE};
  if (desc->option_count == 0) return DFLASH_OK;
  DflashStatus status = fault_check_pointer("options", desc->options, error);
  if (status != DFLASH_OK) return status;
  options->passed = dflash_alloc(desc->option_count, sizeof *options->passed);
  if (options->passed == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for options");
  for (uint32_t i = 0; status == DFLASH_OK && i < desc->option_count; i++)
    status = read_option(&desc->options[i], options, error);
  return status;
}
