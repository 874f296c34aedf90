/* What a self test found, for a person and as records. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "compare/compare.h"
#include "run/selftest_parts.h"
#include "store/table.h"

static DflashSelfCounts *counts_of(DflashSelfSummary *s, const char *kind) {
  for (int i = 0; i < s->kind_count; i++)
    if (strcmp(s->kinds[i].kind, kind) == 0) return &s->kinds[i];
  if (s->kind_count == DFLASH_SELF_KINDS) return &s->kinds[DFLASH_SELF_KINDS - 1];
  s->kinds[s->kind_count] = (DflashSelfCounts){.kind = kind};
  return &s->kinds[s->kind_count++];
}

static void count_defect(DflashSelfSummary *s, DflashSelfCounts *c, const DflashSelfTrial *t) {
  bool found = dflash_self_found(t);
  if (t->end) {
    c->end++;
    c->end_found += found;
    return;
  }
  c->defects++;
  c->found += found;
  c->placed += dflash_self_placed(t);
  c->excused += t->defect->hidden != NULL;
  if (!found || t->result.score >= s->smallest) return;
  s->smallest = t->result.score;
  s->smallest_of = t->defect->id;
}

static void count_correct(DflashSelfSummary *s, const DflashSelfTrial *t) {
  s->correct += t->defect == NULL;
  s->lawful += t->defect != NULL;
  s->alarms += dflash_self_found(t);
  if (t->end || t->result.largest_passing <= s->largest) return;
  s->largest = t->result.largest_passing;
  s->largest_at = t->defect != NULL ? t->defect->id : t->golden->name;
}

/* A correct run in a profile that the base has not: no alarm, and no proof either. */
static bool declined(const DflashSelfTrial *t) {
  return t->ran && t->error.status == DFLASH_UNSUPPORTED && (t->defect == NULL || t->defect->lawful);
}

static void summarise(const DflashSelfTest *test, DflashSelfSummary *s) {
  *s = (DflashSelfSummary){.smallest = INFINITY, .smallest_of = "none", .largest_at = "none"};
  for (int64_t i = 0; i < test->trial_count; i++) {
    const DflashSelfTrial *t = &test->trials[i];
    if (declined(t)) {
      s->declined++;
      continue;
    }
    bool judged = dflash_self_judged(t);
    s->broken += !judged;
    if (t->defect == NULL || t->defect->lawful) {
      if (judged) count_correct(s, t);
      continue;
    }
    count_defect(s, counts_of(s, t->defect->kind), t);
    count_defect(s, &s->all, t);
  }
}

static double percent(int64_t part, int64_t whole) { return 100.0 * (double)part / (double)whole; }

static void print_row(DflashTable *table, const char *name, const DflashSelfCounts *c) {
  bool whole = c->found == c->defects, end = c->end_found == c->end;
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", name);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%lld", (long long)c->defects);
  dflash_table_cell(table, whole ? DFLASH_COLOUR_NONE : DFLASH_COLOUR_BAD, "%lld", (long long)c->found);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%lld", (long long)c->placed);
  if (c->end == 0)
    dflash_table_cell(table, DFLASH_COLOUR_NONE, "-");
  else
    dflash_table_cell(table, end ? DFLASH_COLOUR_NONE : DFLASH_COLOUR_BAD, "%lld of %lld", (long long)c->end_found,
                      (long long)c->end);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%lld", (long long)c->excused);
}

static void print_table(const DflashSelfSummary *s) {
  DflashTable table = {.columns = "lrrrrr"};
  dflash_table_head(&table, "class,defects,found,at the stage,from end values,hidden there");
  for (int i = 0; i < s->kind_count; i++) print_row(&table, s->kinds[i].kind, &s->kinds[i]);
  print_row(&table, "all", &s->all);
  dflash_table_print(&table, stdout, 2, false);
}

static const char *why_not(const DflashSelfTrial *t) {
  if (!t->ran) return "did not run";
  return t->error.status != DFLASH_OK ? t->error.message : "nothing was judged";
}

/* Every trial that did not end as it should, by name. */
static void print_trial(const DflashSelfTrial *t, int verbose) {
  const char *id = t->defect != NULL ? t->defect->id : "no defect";
  bool correct = t->defect == NULL || t->defect->lawful, found = dflash_self_found(t);
  const char *what = t->end ? ", end values" : t->timing ? ", timed" : "";
  if (declined(t)) return;
  if (!dflash_self_judged(t))
    printf("  cannot tell: %s on %s%s: %s\n", id, t->golden->name, what, why_not(t));
  else if (correct && found)
    printf("  false alarm: %s on %s%s: %s\n", id, t->golden->name, what, t->result.message);
  else if (!correct && !found)
    printf("  missed: %s on %s%s; %s\n", id, t->golden->name, what, t->defect->about);
  else if (!correct && !t->end && !dflash_self_placed(t))
    printf("  elsewhere: %s on %s: expected at %s; %s\n", id, t->golden->name, t->defect->stage, t->result.message);
  else if (!correct && !t->end && t->result.score < 2)
    printf("  faint: %s on %s: score %.3g; %s\n", id, t->golden->name, t->result.score, t->result.message);
  else if (verbose && !correct)
    printf("  found: %s on %s%s: %s\n", id, t->golden->name, what, t->result.message);
}

/* Shares of the draws on which each defect was found; those below a twentieth with the golden that finds them. */
static void print_rates(const DflashSelfTest *test) {
  DflashTable table = {.columns = "lrrll"};
  dflash_table_head(&table, "defect,draws,found,share,if below 5%: golden that finds it");
  int64_t alarms = test->rates[test->defect_count].found, correct = test->rates[test->defect_count].tried;
  for (int64_t i = 0; i < test->defect_count; i++) {
    const DflashDefect *d = test->defects[i];
    const DflashSelfRate *r = &test->rates[i];
    if (d->lawful) {
      alarms += r->found;
      correct += r->tried;
      continue;
    }
    bool rare = r->tried == 0 || 20 * r->found < r->tried;
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%s", d->id);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%lld", (long long)r->tried);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%lld", (long long)r->found);
    if (r->tried == 0)
      dflash_table_cell(&table, DFLASH_COLOUR_NONE, "-");
    else
      dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%.1f%%", percent(r->found, r->tried));
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%s%s", rare ? d->goldens : "", d->timing ? " (timing)" : "");
  }
  dflash_table_print(&table, stdout, 2, false);
  printf("over %lld drawn golden%s: %lld false alarms in %lld correct runs\n", (long long)test->options->draws,
         test->options->draws == 1 ? "" : "s", (long long)alarms, (long long)correct);
}

static int64_t drawn_alarms(const DflashSelfTest *test) {
  int64_t alarms = 0;
  for (int64_t i = 0; test->rates != NULL && i <= test->defect_count; i++) {
    bool correct = i == test->defect_count || test->defects[i]->lawful;
    alarms += test->rates[i].broken + (correct ? test->rates[i].found : 0);
  }
  return alarms;
}

static void print_scores(const DflashSelfSummary *s) {
  const char *join = "";
  if (s->correct + s->lawful > 0) {
    printf("largest score of a correct run: %.3g (%s)", s->largest, s->largest_at);
    join = "; ";
  }
  if (s->all.found > 0) printf("%ssmallest of a defect: %.3g (%s)", join, s->smallest, s->smallest_of);
  if (s->correct + s->lawful > 0 || s->all.found > 0) printf("\n");
}

static void print_summary(const DflashSelfSummary *s) {
  int64_t correct = s->correct + s->lawful;
  const DflashSelfCounts *c = &s->all;
  if (c->defects > 0)
    printf("mutation score: %lld of %lld defects found, %lld at the stage (%.1f%%)", (long long)c->found,
           (long long)c->defects, (long long)c->placed, percent(c->placed, c->defects));
  if (c->end > 0)
    printf("; from end values %lld of %lld (%.1f%%)", (long long)c->end_found, (long long)c->end,
           percent(c->end_found, c->end));
  if (c->defects > 0) printf("%s%lld hidden there\n", c->end > 0 ? ", " : "; from end values ", (long long)c->excused);
  printf(
      "false alarms: %lld in %lld correct runs, %lld of lawful variants among them; %lld more are in profiles that the"
      " base has not\n",
      (long long)s->alarms, (long long)correct, (long long)s->lawful, (long long)s->declined);
  print_scores(s);
  if (s->broken > 0) printf("could not be judged: %lld trials\n", (long long)s->broken);
}

static int exit_of(const DflashSelfTest *test, const DflashSelfSummary *s) {
  if (s->all.defects == 0 && s->correct + s->lawful + s->broken == 0) return DFLASH_EXIT_NOTHING;
  bool good = s->all.found == s->all.defects && s->alarms == 0 && s->broken == 0 && s->all.end_found == s->all.end &&
              100 * s->all.placed >= 95 * s->all.defects && s->smallest >= 2 && s->largest <= 0.7 &&
              drawn_alarms(test) == 0;
  return good ? DFLASH_EXIT_OK : DFLASH_EXIT_WRONG;
}

void dflash_self_report(const DflashSelfTest *test, DflashSelfSummary *s) {
  summarise(test, s);
  s->exit = exit_of(test, s);
  if (test->options->run->quiet && s->exit == DFLASH_EXIT_OK) return;
  if (s->all.defects > 0) print_table(s);
  for (int64_t i = 0; i < test->trial_count; i++) print_trial(&test->trials[i], test->options->run->verbose);
  if (test->rates != NULL) print_rates(test);
  print_summary(s);
}
