#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

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

/* Ids are words joined by '-': one is close when it shares a word of three letters or more. */
static bool shares_word(const char *id, const char *wanted) {
  for (const char *word = wanted; *word != '\0';) {
    const size_t length = strcspn(word, "-");
    for (const char *at = id; length >= 3 && at != NULL && *at != '\0'; at = strchr(at, '-')) {
      at += *at == '-';
      if (strncmp(at, word, length) == 0) return true;
    }
    word += length;
    word += *word == '-';
  }
  return false;
}

static DflashStatus unknown_defect(const char *wanted, DflashError *error) {
  enum { SHOWN = 6 };
  DflashText close = {0};
  size_t count = 0, shown = 0;
  const Fault *fault;
  for (; (fault = fault_at(count)) != NULL; count++)
    if (shown < SHOWN && shares_word(fault->defect.id, wanted))
      dflash_text_append(&close, "%s%s", shown++ > 0 ? ", " : "", fault->defect.id);
  const DflashStatus status =
      dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                       "faulty: no defect \"%s\"; %s%s; the exported " DFLASH_CATALOGUE_SYMBOL " lists all %zu", wanted,
                       shown > 0 ? "close: " : "no id is close", shown > 0 && !close.failed ? close.data : "", count);
  dflash_text_free(&close);
  return status;
}

static DflashStatus bad_value(const char *key, const char *value, const char *valid, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s is \"%s\"; valid: %s", key, value, valid);
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
  if (strcmp(option->key, "base") == 0) {
    options->base = option->value;
    const bool valid = strcmp(option->value, "reference") == 0 || strcmp(option->value, "blas") == 0;
    return valid ? DFLASH_OK : bad_value("base", option->value, "reference, blas", error);
  }
  options->passed[options->passed_count++] = *option;
  return DFLASH_OK;
}

DflashStatus fault_options_parse(const DflashModelDesc *desc, FaultOptions *options, DflashError *error) {
  *options = (FaultOptions){.base = FAULT_BASE_DEFAULT, .fault = &none};
  if (desc->option_count == 0) return DFLASH_OK;
  DflashStatus status = fault_check_pointer("options", desc->options, error);
  if (status != DFLASH_OK) return status;
  options->passed = dflash_alloc(desc->option_count, sizeof *options->passed);
  if (options->passed == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for options");
  for (uint32_t i = 0; status == DFLASH_OK && i < desc->option_count; i++)
    status = read_option(&desc->options[i], options, error);
  return status;
}
