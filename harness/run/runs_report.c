#include "run/runs_report.h"

#include <math.h>

#include "store/table.h"
#include "store/units.h"

enum { INDENT = 2, STAGES_SHOWN = 6 };

static int colour_of(int verdict) {
  if (verdict == DFLASH_TIME_SLOWER) return DFLASH_COLOUR_BAD;
  if (verdict == DFLASH_TIME_CANNOT_TELL) return DFLASH_COLOUR_WARNING;
  return verdict == DFLASH_TIME_FASTER ? DFLASH_COLOUR_GOOD : DFLASH_COLOUR_NONE;
}

static void add_shares(DflashTable *table, const DflashTimeShift *s, double moved) {
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%+.2f%%", 100 * s->shift);
  if (isnan(s->low))
    dflash_table_cell(table, DFLASH_COLOUR_NONE, "-");
  else
    dflash_table_cell(table, DFLASH_COLOUR_NONE, "%+.2f%% to %+.2f%%", 100 * s->low, 100 * s->high);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%+.2f%%", 100 * moved);
}

static void add_row(DflashTable *table, const char *name, const DflashTimeShift *s, double moved, bool judged) {
  char text[DFLASH_UNITS_MAX];
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", name);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_show_time(s->a, text));
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_show_time(s->b, text));
  add_shares(table, s, moved);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, judged ? "%.2g" : "-", s->p);
  dflash_table_cell(table, judged ? colour_of(s->verdict) : DFLASH_COLOUR_NONE, "%s",
                    judged ? dflash_time_verdict_name(s->verdict) : "locates");
}

/* Stages that moved the block by a tenth of the share or more; shown where something changed. */
static bool is_shown(const DflashCaseComparison *one, int64_t stage) {
  const int verdict = one->whole.verdict;
  if (verdict != DFLASH_TIME_SLOWER && verdict != DFLASH_TIME_FASTER) return false;
  const double least = DFLASH_TIMES_PART_LEAST * one->share;
  return stage < STAGES_SHOWN && fabs(one->stages[stage].part.moved) >= least;
}

static void print_table(FILE *file, const DflashCaseComparison *one) {
  DflashTable table = {.columns = "lrrrlrrl"};
  dflash_table_head(&table, "what,A,B,change,95% interval,of block,p,verdict");
  add_row(&table, "block", &one->whole.whole, one->whole.whole.shift, true);
  for (int64_t i = 0; i < one->group_count; i++) {
    const DflashTimesPart *part = &one->groups[i].part;
    add_row(&table, one->groups[i].name, &part->item.shift, part->moved, part->units.a_count > 0);
  }
  for (int64_t i = 0; i < one->stage_count && is_shown(one, i); i++)
    add_row(&table, one->stages[i].name, &one->stages[i].part.item.shift, one->stages[i].part.moved, false);
  dflash_table_print(&table, file, INDENT, false);
}

static void print_line(FILE *file, const char *before, DflashText *line) {
  if (line->size > 0) dflash_text_clean(line->data);
  if (line->size > 0) fprintf(file, "%*s%s%s\n", INDENT, "", before, line->data);
  dflash_text_free(line);
}

static void print_case(FILE *file, const DflashRunsComparison *comparison, const DflashCaseComparison *one) {
  DflashText title = {0}, made = {0}, assumed = {0}, visible = {0}, verdict = {0};
  dflash_case_comparison_title(one, &title);
  dflash_text_append(&title, "%s", "");
  if (!title.failed) dflash_text_clean(title.data);
  fprintf(file, "%s\n", title.failed ? "" : title.data);
  dflash_text_free(&title);
  dflash_case_comparison_made(one, &made);
  print_line(file, "differs: ", &made);
  if (one->why[0] == '\0') print_table(file, one);
  dflash_case_comparison_assumed(one, &assumed);
  print_line(file, "", &assumed);
  dflash_case_comparison_visible(comparison, one, &visible);
  print_line(file, "", &visible);
  dflash_case_comparison_line(one, &verdict);
  print_line(file, "", &verdict);
}

void dflash_runs_print(FILE *file, const DflashRunsComparison *comparison) {
  const DflashTimesRule *rule = &comparison->rule.compare;
  fprintf(file, "B against A; chance of any false change %.3g%% over %lld case%s, half of it for the block\n",
          100 * rule->rate, (long long)comparison->count, comparison->count == 1 ? "" : "s");
  for (int64_t i = 0; i < comparison->count; i++) print_case(file, comparison, &comparison->cases[i]);
}
