#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/console.h"
#include "store/fields.h"
#include "store/table.h"
#include "store/units.h"

enum { MOST_FAILURES = 8, INDENT = 4 };

static void print_heading(DflashConsole *console, const cJSON *record) {
  char *line = NULL;
  const char *device = dflash_field_text(record, "device");
  const char *modes = dflash_field_text(record, "modes");
  if (asprintf(&line, "%s: %s%s%s, profile %s%s%s", dflash_field_text(record, "file"),
               dflash_field_text(record, "backend"), *device ? " on " : "", device,
               dflash_field_text(record, "profile"), *modes ? ", " : "", modes) < 0)
    return;
  if (!dflash_console_changed(&console->heading, line)) return;
  dflash_console_head(console, line);
  dflash_console_forget(console->told);
}

/* "  pass          far-context                   312 passed, 0 failed, 4 other  largest passing score 0.31  1.20 s" */
static void print_line(const DflashConsole *console, const cJSON *record) {
  char score[DFLASH_UNITS_MAX], elapsed[DFLASH_UNITS_MAX];
  const char *outcome = dflash_field_text(record, "outcome");
  fputs("  ", console->file);
  dflash_table_text(console->file, console->coloured, dflash_console_colour(outcome), "%-12s", outcome);
  double passed = dflash_field_number(record, "passed");
  double largest = passed > 0 ? dflash_field_number(record, "largest_score") : NAN;
  dflash_table_text(console->file, false, DFLASH_COLOUR_NONE,
                    "  %-28s  %.0f passed, %.0f failed, %.0f other  largest passing score %s  %s",
                    dflash_field_text(record, "case"), passed, dflash_field_number(record, "failed"),
                    dflash_field_number(record, "other"), dflash_show_score(largest, score),
                    dflash_show_seconds(dflash_field_number(record, "elapsed_s"), elapsed));
  fputc('\n', console->file);
}

static bool is_failure(const cJSON *verdict) {
  DflashOutcomeClass class = dflash_outcome_class(dflash_field_text(verdict, "outcome"));
  return class == DFLASH_OUTCOME_FAILED || class == DFLASH_OUTCOME_BROKEN;
}

static void add_share_of_elements(DflashTable *table, const cJSON *verdict) {
  double bad = dflash_field_number(verdict, "bad"), elements = dflash_field_number(verdict, "elements");
  if (isnan(bad) || isnan(elements))
    dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", "");
  else
    dflash_table_cell(table, DFLASH_COLOUR_NONE, "%.0f of %.0f", bad, elements);
}

static void add_number(DflashTable *table, const cJSON *verdict, const char *name,
                       const char *(*show)(double, char *)) {
  char text[DFLASH_UNITS_MAX] = "";
  bool present = dflash_field(verdict, name) != NULL;
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", present ? show(dflash_field_number(verdict, name), text) : "");
}

static void add_remarks(DflashTable *table, const cJSON *verdict) {
  const char *covered = dflash_field_text(verdict, "covered_by"), *pattern = dflash_field_text(verdict, "pattern");
  const char *note = dflash_field_text(verdict, "note");
  double runs = dflash_field_number(verdict, "runs");
  char repeated[64] = "";
  if (dflash_field_number(verdict, "failed_runs") > 0)
    snprintf(repeated, sizeof repeated, " [%.0f of %.0f runs failed]", dflash_field_number(verdict, "failed_runs"),
             runs);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s%s%s%s%s%s%s", pattern, *covered ? "by " : "", covered,
                    *note && (*pattern || *covered) ? "; " : "", note,
                    dflash_field_true(verdict, "inherited") && !*note ? "inherited" : "", repeated);
}

static void add_verdict(DflashTable *table, const cJSON *verdict) {
  char label[128];
  const char *outcome = dflash_field_text(verdict, "outcome");
  dflash_table_cell(table, dflash_console_colour(outcome), "%s", outcome);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_field_text(verdict, "mode"));
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_record_label(verdict, label, sizeof label));
  add_number(table, verdict, "score", dflash_show_score);
  add_number(table, verdict, "got", dflash_show_number);
  add_number(table, verdict, "expected", dflash_show_number);
  add_share_of_elements(table, verdict);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_field_text(verdict, "place"));
  add_remarks(table, verdict);
}

/* All verdicts, or the failures that did not inherit their error, up to a number; returns how many failures were left
 * out. */
static int print_verdicts(const DflashConsole *console) {
  DflashTable table = {.columns = "lllrrrrll"};
  int shown = 0, left_out = 0;
  const cJSON *verdict;
  cJSON_ArrayForEach(verdict, console->verdicts) {
    bool failure = is_failure(verdict);
    bool wanted = failure && !dflash_field_true(verdict, "inherited") && shown < MOST_FAILURES;
    left_out += failure && !wanted && !console->verbose;
    if (!wanted && !console->verbose) continue;
    if (shown++ == 0) dflash_table_head(&table, "outcome,mode,stage,score,got,expected,off,place,pattern");
    add_verdict(&table, verdict);
  }
  dflash_table_print(&table, console->file, INDENT, console->coloured);
  return left_out;
}

/* Of verdicts that are neither plain passes nor failures, the first of each outcome and mode, and how many more. */
static bool is_notable(const cJSON *verdict) {
  const char *outcome = dflash_field_text(verdict, "outcome");
  return !is_failure(verdict) && strcmp(outcome, "pass") != 0 && strcmp(outcome, "covered") != 0;
}

static bool same_kind(const cJSON *a, const cJSON *b) {
  return strcmp(dflash_field_text(a, "outcome"), dflash_field_text(b, "outcome")) == 0 &&
         strcmp(dflash_field_text(a, "mode"), dflash_field_text(b, "mode")) == 0;
}

static bool is_first_of_kind(const cJSON *verdict) {
  for (const cJSON *other = verdict->prev; other->next; other = other->prev) /* the first one's prev is the last */
    if (same_kind(other, verdict)) return false;
  return true;
}

static int count_later(const cJSON *verdict) {
  int count = 0;
  for (const cJSON *other = verdict->next; other; other = other->next) count += same_kind(other, verdict);
  return count;
}

/* Whether this file's cases have not told it yet; a sentence that is out of memory is told again. */
static bool is_news(const DflashConsole *console, const char *sentence) {
  const cJSON *told;
  cJSON_ArrayForEach(told, console->told) {
    if (strcmp(told->valuestring, sentence) == 0) return false;
  }
  cJSON *kept = cJSON_CreateString(sentence);
  if (!cJSON_AddItemToArray(console->told, kept)) cJSON_Delete(kept);
  return true;
}

/* " (alone) attn.q/2: why (and 3 more)" after the outcome; NULL when memory is out. */
static char *notable_sentence(const cJSON *verdict) {
  char label[128], more[32] = "", *line = NULL;
  const char *note = dflash_field_text(verdict, "note");
  int later = count_later(verdict);
  if (later > 0) snprintf(more, sizeof more, " (and %d more)", later);
  if (asprintf(&line, " (%s) %s%s%s%s", dflash_field_text(verdict, "mode"),
               dflash_record_label(verdict, label, sizeof label), *note ? ": " : "", note, more) < 0)
    return NULL;
  return line;
}

/* One without a reason belongs to its case only. */
static void print_notable(const DflashConsole *console) {
  const cJSON *verdict;
  cJSON_ArrayForEach(verdict, console->verdicts) {
    if (!is_notable(verdict) || !is_first_of_kind(verdict)) continue;
    const char *outcome = dflash_field_text(verdict, "outcome");
    char *sentence = notable_sentence(verdict);
    bool reasoned = dflash_field(verdict, "note") != NULL;
    if (sentence && (!reasoned || is_news(console, sentence))) {
      fprintf(console->file, "%*s", INDENT, "");
      dflash_table_text(console->file, console->coloured, dflash_console_colour(outcome), "%s", outcome);
      dflash_table_text(console->file, false, DFLASH_COLOUR_NONE, "%s", sentence);
      fputc('\n', console->file);
    }
    free(sentence);
  }
}

static void print_text(const DflashConsole *console, const char *label, const char *text) {
  if (!*text) return;
  fprintf(console->file, "%*s", INDENT, "");
  dflash_table_text(console->file, false, DFLASH_COLOUR_NONE, "%s%s", label, text);
  fputc('\n', console->file);
}

/* A verdict's note that was printed says the same. */
static bool is_told(const DflashConsole *console, const char *message) {
  const cJSON *verdict;
  cJSON_ArrayForEach(verdict, console->verdicts) {
    if (strcmp(dflash_field_text(verdict, "note"), message) == 0) return true;
  }
  return false;
}

void dflash_console_case(DflashConsole *console, const cJSON *record) {
  print_heading(console, record);
  print_line(console, record);
  int left_out = print_verdicts(console);
  if (left_out > 0)
    fprintf(console->file, "%*s%d more failures, inherited or past the first %d; --verbose shows all\n", INDENT, "",
            left_out, MOST_FAILURES);
  if (!console->verbose) print_notable(console);
  const char *message = dflash_field_text(record, "message");
  if (!is_told(console, message) && is_news(console, message)) print_text(console, "", message);
  print_text(console, "reproduce: ", dflash_field_text(record, "reproduce"));
}
