#include "cli/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define TABLE_MAX 64
#define LONG_ONLY 256 /* getopt values of options without a short form start here */

typedef struct Names {
  char long_name[TABLE_MAX][32];
  char short_names[3 * TABLE_MAX + 4];
  struct option options[TABLE_MAX + 2];
} Names;

static char short_form(const DflashArgument *argument) {
  const char *comma = strchr(argument->name, ',');
  return comma != NULL ? comma[1] : '\0';
}

static void name_options(const DflashArgument *table, int count, Names *names) {
  char *at = names->short_names;
  *at++ = ':'; /* a missing value is told apart from an unknown option */
  for (int i = 0; i < count; i++) {
    snprintf(names->long_name[i], sizeof names->long_name[i], "%.*s", (int)strcspn(table[i].name, ","), table[i].name);
    names->options[i] = (struct option){.name = names->long_name[i],
                                        .has_arg = table[i].value != NULL ? required_argument : no_argument,
                                        .val = LONG_ONLY + i};
    if (short_form(&table[i]) == '\0') continue;
    *at++ = short_form(&table[i]);
    if (table[i].value != NULL) *at++ = ':';
  }
  names->options[count] = (struct option){.name = "help", .val = 'h'};
  *at++ = 'h';
  *at = '\0';
}

static void print_help(const char *usage, const DflashArgument *table, int count) {
  printf("%s\n\noptions:\n", usage);
  for (int i = 0; i < count; i++) {
    char left[64];
    int n = 0;
    if (short_form(&table[i]) != '\0') n = snprintf(left, sizeof left, "-%c, ", short_form(&table[i]));
    snprintf(left + n, sizeof left - (size_t)n, "--%.*s%s%s", (int)strcspn(table[i].name, ","), table[i].name,
             table[i].value != NULL ? " " : "", table[i].value != NULL ? table[i].value : "");
    printf("  %-26s %s\n", left, table[i].help);
  }
  printf("  %-26s %s\n", "-h, --help", "show this and end");
}

static DflashStatus bad_value(const DflashArgument *argument, const char *value, const char *form, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--%.*s: '%s' is not %s", (int)strcspn(argument->name, ","),
                          argument->name, value, form);
}

DflashStatus dflash_argument_seed(const char *value, uint64_t *seed, DflashError *error) {
  if (value == NULL) return DFLASH_OK;
  errno = 0;
  const unsigned long long parsed = strtoull(value, NULL, 10);
  if (value[0] == '\0' || value[strspn(value, "0123456789")] != '\0' || errno != 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--seed: '%s' is not a whole number below 2^64", value);
  *seed = parsed;
  return DFLASH_OK;
}

static bool takes_one_value(const DflashArgument *argument) {
  return argument->kind != DFLASH_ARGUMENT_FLAG && argument->kind != DFLASH_ARGUMENT_CALL;
}

static DflashStatus take(const DflashArgument *argument, const char *value, DflashError *error) {
  switch (argument->kind) {
  case DFLASH_ARGUMENT_FLAG:
    *(int *)argument->target = 1;
    return DFLASH_OK;
  case DFLASH_ARGUMENT_TEXT:
    *(const char **)argument->target = value;
    return DFLASH_OK;
  case DFLASH_ARGUMENT_NUMBER:
    if (dflash_parse_i64(value, argument->target) && *(int64_t *)argument->target >= 0) return DFLASH_OK;
    return bad_value(argument, value, "a whole number from 0", error);
  case DFLASH_ARGUMENT_THREADS:
    if (dflash_parse_i64(value, argument->target) && *(int64_t *)argument->target >= 0 &&
        *(int64_t *)argument->target <= DFLASH_THREADS_MAX)
      return DFLASH_OK;
    return bad_value(argument, value, "a number of threads from 0 (all CPUs) to 1024", error);
  case DFLASH_ARGUMENT_SHARE:
    if (dflash_parse_share(value, argument->target)) return DFLASH_OK;
    return bad_value(argument, value, "a share such as 1% or 0.01", error);
  case DFLASH_ARGUMENT_SECONDS:
    if (dflash_parse_seconds(value, argument->target)) return DFLASH_OK;
    return bad_value(argument, value, "a time such as 60s, 500ms or 2m", error);
  default:
    return argument->take(argument->target, value, error);
  }
}

static int find_short(const DflashArgument *table, int count, int letter) {
  for (int i = 0; i < count; i++)
    if (short_form(&table[i]) == letter) return i;
  return -1;
}

/* getopt leaves a short option's letter in optopt, of a long one its value or 0. A cluster of letters is not passed
 * until its last one. */
static DflashStatus refuse(char **argv, int missing_value, DflashError *error) {
  char letter[3] = {'-', (char)optopt, '\0'};
  const char *word = optopt > 0 && optopt < LONG_ONLY ? letter : argv[optind - 1];
  if (missing_value) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "option '%s' needs a value", word);
  if (optopt >= LONG_ONLY)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "option '%s': it takes no value", word);
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "option '%s' is unknown here; --help lists what there is",
                          word);
}

DflashStatus dflash_arguments_parse(int argc, char **argv, const char *usage, const DflashArgument *table, int count,
                                    int *operands, int *helped, DflashError *error) {
  Names *names = calloc(1, sizeof *names);
  if (names == NULL || count > TABLE_MAX) {
    free(names);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for options");
  }
  name_options(table, count, names);
  DflashStatus status = DFLASH_OK;
  bool seen[TABLE_MAX] = {false};
  *helped = 0;
  optind = 0;
  opterr = 0;
  while (status == DFLASH_OK) {
    int found = getopt_long(argc, argv, names->short_names, names->options, NULL);
    if (found == -1) break;
    int i = found >= LONG_ONLY ? found - LONG_ONLY : find_short(table, count, found);
    if (found == 'h' && i < 0) {
      print_help(usage, table, count);
      *helped = 1;
      break;
    }
    if (i < 0)
      status = refuse(argv, found == ':', error);
    else if (seen[i] && takes_one_value(&table[i]))
      status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "option --%s is given twice", names->long_name[i]);
    else
      status = take(&table[i], optarg, error);
    if (i >= 0) seen[i] = true;
  }
  *operands = argc - optind;
  memmove(argv + 1, argv + optind, (size_t)*operands * sizeof *argv);
  free(names);
  return status;
}
