/* The lines that tell what a comparison found and what it took for granted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/runs_report.h"
#include "store/fields.h"

enum { SHARE_TEXT = 32 };

/* "+2.13%"; differences are shares. */
static const char *signed_share(double share, char text[SHARE_TEXT]) {
  if (isnan(share))
    snprintf(text, SHARE_TEXT, "-");
  else
    snprintf(text, SHARE_TEXT, "%+.2f%%", 100 * share);
  return text;
}

/* "operations.h5 main: blas on cpu, profile exact, block, cache-hot" */
void dflash_case_comparison_title(const DflashCaseComparison *one, DflashText *out) {
  char text[4][DFLASH_KEY_TEXT];
  const DflashResult *a = one->a[0], *b = one->b[0];
  if (a == NULL && b == NULL) return; /* a case of no side is none */
  a = a != NULL ? a : b;
  b = b != NULL ? b : a;
  const char *left = dflash_result_key(a, DFLASH_KEY_BACKEND, text[0]);
  const char *right = dflash_result_key(b, DFLASH_KEY_BACKEND, text[1]);
  const char *path = dflash_field_text(b->bench, "file"), *slash = strrchr(path, '/');
  dflash_text_append(out, "%s %s: %s", slash != NULL ? slash + 1 : path, dflash_result_key(a, DFLASH_KEY_CASE, text[2]),
                     left);
  if (strcmp(left, right) != 0) dflash_text_append(out, " (A), %s (B)", right);
  dflash_text_append(out, " on %s, profile %s", dflash_result_key(b, DFLASH_KEY_DEVICE, text[2]),
                     dflash_result_key(a, DFLASH_KEY_PROFILE, text[3]));
  dflash_text_append(out, ", %s, %s", dflash_result_key(a, DFLASH_KEY_WHAT, text[2]),
                     dflash_result_key(a, DFLASH_KEY_CACHES, text[3]));
}

void dflash_case_comparison_assumed(const DflashCaseComparison *one, DflashText *out) {
  const long long a = (long long)one->a_count, b = (long long)one->b_count;
  if (one->a_count == 0 || one->b_count == 0) return;
  switch (one->units) {
  case DFLASH_UNITS_PAIRS:
    dflash_text_append(out, "units are %lld pairs of processes that ran in turn", a);
    break;
  case DFLASH_UNITS_TOGETHER:
    dflash_text_append(out, "units are %lld and %lld processes that ran over the same time", a, b);
    break;
  case DFLASH_UNITS_APART:
    dflash_text_append(out, "units are %lld and %lld processes, one side after the other", a, b);
    break;
  default:
    dflash_text_append(out, "units are batches of the samples of one process a side; groups and stages only locate");
  }
  if (one->between > 0)
    dflash_text_append(
        out, "; assumed: each side as a whole may be off by %.2g%% (one standard deviation) for other reasons",
        100 * one->between);
  else if (one->units != DFLASH_UNITS_PAIRS)
    dflash_text_append(out, "; assumed: sides as a whole are off for no other reason");
  if (one->left_out > 0)
    dflash_text_append(out, "; %lld left out, the last because %s", (long long)one->left_out, one->disturbed);
}

void dflash_case_comparison_made(const DflashCaseComparison *one, DflashText *out) {
  static const char *const members[] = {"settings", "backend_version", "backend_file", "revision", "dirty",
                                        "compiler", "flags",           "build_type",   "driver",   "governor"};
  char left[DFLASH_KEY_TEXT], right[DFLASH_KEY_TEXT];
  if (one->a_count == 0 || one->b_count == 0) return;
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
    dflash_result_made(one->a[0], members[i], left);
    dflash_result_made(one->b[0], members[i], right);
    if (strcmp(left, right) != 0)
      dflash_text_append(out, "%s%s \"%.60s\" -> \"%.60s\"", out->size > 0 ? ", " : "", members[i], left, right);
  }
}

void dflash_case_comparison_visible(const DflashRunsComparison *comparison, const DflashCaseComparison *one,
                                    DflashText *out) {
  const double power = comparison->rule.compare.power;
  const char *units = one->units == DFLASH_UNITS_PAIRS      ? "pairs"
                      : one->units == DFLASH_UNITS_ONE_EACH ? "batches a side"
                                                            : "processes a side";
  if (one->why[0] != '\0') return;
  dflash_text_append(out, "a change is larger than %.3g%%; ", 100 * one->share);
  if (isfinite(one->whole.whole.visible))
    dflash_text_append(out, "the smallest slowdown of the block that is called %g times in 100 at this noise: %.2g%%",
                       100 * power, 100 * one->whole.whole.visible);
  else
    dflash_text_append(out, "no slowdown, however large, can be called with so few");
  dflash_text_append(out, "; %lld %s can call the block", (long long)one->whole.least, units);
  if (one->whole.least_parts > 0) dflash_text_append(out, ", %lld a group", (long long)one->whole.least_parts);
}

/* The group in which it lies; groups that were called themselves otherwise. */
static void append_place(const DflashCaseComparison *one, DflashText *out) {
  char text[SHARE_TEXT];
  if (one->whole.place < 0) return;
  const DflashNamedPart *group = &one->groups[one->whole.place];
  const int verdict = group->part.item.shift.verdict;
  const bool called = verdict == DFLASH_TIME_SLOWER || verdict == DFLASH_TIME_FASTER;
  dflash_text_append(out, ", %s in %s (%s of the block)", called ? "called" : "most of it", group->name,
                     signed_share(group->part.moved, text));
}

static void append_reason(const DflashCaseComparison *one, DflashText *out) {
  const DflashTimeShift *whole = &one->whole.whole;
  char low[SHARE_TEXT], high[SHARE_TEXT];
  if (!isfinite(whole->visible))
    dflash_text_append(out, "too few: %lld and %lld where %lld are needed", (long long)one->a_count,
                       (long long)one->b_count, (long long)one->whole.least);
  else
    dflash_text_append(out, "the interval %s to %s reaches beyond %.2g%%%s", signed_share(whole->low, low),
                       signed_share(whole->high, high), 100 * one->share,
                       whole->p <= whole->rate ? "" : " and no rank test calls it");
}

void dflash_case_comparison_line(const DflashCaseComparison *one, DflashText *out) {
  const int verdict = dflash_case_comparison_verdict(one);
  const DflashTimeShift *whole = &one->whole.whole;
  char shift[SHARE_TEXT], low[SHARE_TEXT], high[SHARE_TEXT];
  dflash_text_append(out, "%s: ", dflash_time_verdict_name(verdict));
  if (one->why[0] != '\0') {
    dflash_text_append(out, "%s", one->why);
    return;
  }
  if (verdict == DFLASH_TIME_CANNOT_TELL) {
    append_reason(one, out);
    return;
  }
  dflash_text_append(out, "%s", whole->verdict == verdict ? "the block" : "a group; the block");
  if (verdict == DFLASH_TIME_SAME) dflash_text_append(out, " within %.3g%%:", 100 * one->share);
  dflash_text_append(out, " %s (95%%: %s to %s)", signed_share(whole->shift, shift), signed_share(whole->low, low),
                     signed_share(whole->high, high));
  append_place(one, out);
}
