/* Records of earlier runs: parsed, matched with themselves, compared and told. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/compare_runs.h"
#include "run/runs_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const DflashResult *const *a, int64_t count, DflashText *text) {
  DflashRunsRule rule;
  DflashRunsComparison comparison;
  dflash_runs_rule_default(&rule);
  if (dflash_runs_compare(a, count / 2, a + count / 2, count - count / 2, &rule, &comparison, NULL) == DFLASH_OK) {
    dflash_runs_markdown(text, &comparison);
    for (int64_t i = 0; i < comparison.count; i++) dflash_case_comparison_made(&comparison.cases[i], text);
  }
  dflash_runs_comparison_close(&comparison);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DflashRuns runs = {0};
  DflashText text = {0};
  int64_t count = 0;
  if (dflash_runs_parse(&runs, (const char *)data, size, "input", NULL) == DFLASH_OK) {
    const DflashResult **all = dflash_runs_side(&runs, NULL, &count);
    if (all != NULL && count < 64) compare(all, count, &text);
    free(all);
  }
  dflash_text_free(&text);
  dflash_runs_close(&runs);
  return 0;
}
