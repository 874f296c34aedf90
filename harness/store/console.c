#include "store/console.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/fields.h"
#include "store/table.h"
#include "store/units.h"
#include "store/writer.h"

int dflash_console_colour(const char *outcome) {
  switch (dflash_outcome_class(outcome)) {
  case DFLASH_OUTCOME_PASSED:
    return DFLASH_COLOUR_GOOD;
  case DFLASH_OUTCOME_SKIPPED:
    return DFLASH_COLOUR_WARNING;
  default:
    return DFLASH_COLOUR_BAD;
  }
}

bool dflash_console_changed(char **last, char *text) {
  if (text && (!*last || strcmp(*last, text) != 0)) {
    free(*last);
    *last = text;
    return true;
  }
  free(text);
  return false;
}

void dflash_console_head(const DflashConsole *console, const char *line) {
  dflash_table_text(console->file, console->coloured, DFLASH_COLOUR_HEAD, "%s", line);
  fputc('\n', console->file);
}

/* What is resident differs from file to file and makes no other model. */
static char *model_line(const cJSON *record, const char *resident) {
  char *line = NULL;
  if (asprintf(&line, "model: %s %s, device %s (%s; %s), profile %s%s; %s%s", dflash_field_text(record, "backend"),
               dflash_field_text(record, "backend_version"), dflash_field_text(record, "device"),
               dflash_field_text(record, "device_name"), dflash_field_text(record, "driver"),
               dflash_field_text(record, "profile"), resident, dflash_field_text(record, "path"),
               dflash_field_true(record, "repeatable") ? "" : "; not repeatable") < 0)
    return NULL;
  return line;
}

static void print_model(DflashConsole *console, const cJSON *record) {
  char bytes[DFLASH_UNITS_MAX], resident[DFLASH_UNITS_MAX + 16];
  if (!dflash_console_changed(&console->model, model_line(record, ""))) return;
  snprintf(resident, sizeof resident, ", %s resident",
           dflash_show_bytes(dflash_field_number(record, "resident_bytes"), bytes));
  char *line = model_line(record, resident);
  if (line) dflash_console_head(console, line);
  free(line);
}

/* What compare's files lack. */
static void print_absent(const DflashConsole *console, const cJSON *record) {
  double stages = dflash_field_number(record, "absent_stages"), cases = dflash_field_number(record, "absent_cases");
  double all = dflash_field_number(record, "golden_cases");
  if (stages > 0) fprintf(console->file, "; %.0f stage%s not in the file", stages, stages == 1 ? "" : "s");
  if (cases > 0) fprintf(console->file, "; %.0f of %.0f cases not in the file", cases, all);
}

static void print_summary(const DflashConsole *console, const cJSON *record) {
  static const char *const counts[] = {"passed", "failed", "skipped", "not_run", "resumed", "bad_input"};
  char elapsed[DFLASH_UNITS_MAX];
  double cases = dflash_field_number(record, "cases");
  bool good = dflash_field_number(record, "exit") == 0;
  dflash_table_text(console->file, console->coloured, good ? DFLASH_COLOUR_GOOD : DFLASH_COLOUR_BAD, "%.0f case%s",
                    cases, cases == 1 ? "" : "s");
  const char *between = ": ";
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    double count = dflash_field_number(record, counts[i]);
    if (isnan(count) || (count == 0 && i >= 2)) continue;
    const char *gap = strchr(counts[i], '_'); /* "not_run" reads "not run" */
    int word = gap ? (int)(gap - counts[i]) : (int)strlen(counts[i]);
    fprintf(console->file, "%s%.0f %.*s%s%s", between, count, word, counts[i], gap ? " " : "", gap ? gap + 1 : "");
    between = ", ";
  }
  print_absent(console, record);
  fprintf(console->file, "; %s; exit status %.0f\n",
          dflash_show_seconds(dflash_field_number(record, "elapsed_s"), elapsed), dflash_field_number(record, "exit"));
}

static void print_run(const DflashConsole *console, const cJSON *record) {
  const cJSON *item;
  if (!console->verbose) return;
  DflashTable table = {.columns = "ll"};
  cJSON_ArrayForEach(item, dflash_field(record, "environment")) {
    char *printed = cJSON_IsString(item) ? NULL : dflash_record_line(item);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%s", item->string);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%s", printed ? printed : item->valuestring ? item->valuestring : "");
    free(printed);
  }
  dflash_table_print(&table, console->file, 0, console->coloured);
}

/* Verdicts wait for their case: what is worth showing is known only then. */
static DflashStatus keep_verdict(DflashConsole *console, const cJSON *record, DflashError *error) {
  cJSON *copy = cJSON_Duplicate(record, 1);
  if (copy && cJSON_AddItemToArray(console->verdicts, copy)) return DFLASH_OK;
  cJSON_Delete(copy);
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a verdict");
}

void dflash_console_forget(cJSON *array) {
  while (array->child) cJSON_DeleteItemFromArray(array, 0);
}

static DflashStatus console_record(void *self, const cJSON *record, DflashError *error) {
  DflashConsole *console = self;
  if (dflash_record_is(record, "verdict")) return keep_verdict(console, record, error);
  if (dflash_record_is(record, "run")) print_run(console, record);
  if (dflash_record_is(record, "model")) print_model(console, record);
  if (dflash_record_is(record, "bench")) dflash_console_bench(console, record);
  if (dflash_record_is(record, "summary")) print_summary(console, record);
  if (dflash_record_is(record, "case")) {
    dflash_console_case(console, record);
    dflash_console_forget(console->verdicts);
  }
  if (fflush(console->file) == 0 && !ferror(console->file)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_IO, "cannot write to the console: %s", strerror(errno));
}

static DflashStatus console_close(void *self, DflashError *error) {
  DflashConsole *console = self;
  (void)error; /* every record was flushed */
  cJSON_Delete(console->verdicts);
  cJSON_Delete(console->told);
  free(console->heading);
  free(console->model);
  free(console);
  return DFLASH_OK;
}

static bool wants_colour(FILE *file) {
  const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
  int descriptor = fileno(file);
  return descriptor >= 0 && isatty(descriptor) && !(no_colour && *no_colour) && terminal &&
         strcmp(terminal, "dumb") != 0;
}

DflashStatus dflash_console_open(FILE *file, int verbose, DflashWriter *writer, DflashError *error) {
  DflashConsole *console = calloc(1, sizeof *console);
  if (console) console->verdicts = cJSON_CreateArray();
  if (console) console->told = cJSON_CreateArray();
  if (!console || !console->verdicts || !console->told) {
    if (console) console_close(console, NULL);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the console's tables");
  }
  console->file = file;
  console->verbose = verbose;
  console->coloured = wants_colour(file);
  *writer = (DflashWriter){.self = console, .record = console_record, .close = console_close};
  return DFLASH_OK;
}
