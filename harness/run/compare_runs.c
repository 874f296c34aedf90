#include "run/compare_runs.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "run/runs_report.h"
#include "store/fields.h"

const DflashResult **dflash_runs_side(const DflashRuns *runs, const char *side, int64_t *count) {
  const DflashResult **found = calloc((size_t)runs->count + 1, sizeof(DflashResult *));
  *count = 0;
  for (int64_t i = 0; found != NULL && i < runs->count; i++) {
    const DflashResult *result = &runs->results[i];
    if (result->bench == NULL) continue;
    if (side == NULL || strcmp(dflash_field_text(result->bench, "side"), side) == 0) found[(*count)++] = result;
  }
  return found;
}

typedef struct Work {
  DflashRuns runs[2];
  const DflashResult **at[2];
  int64_t count[2];
  DflashRunsComparison comparison;
} Work;

static DflashStatus read_sides(const DflashCompareRunsOptions *o, Work *w, DflashError *error) {
  const char *const places[] = {o->a, o->b != NULL ? o->b : o->a};
  const char *const sides[] = {o->b != NULL ? NULL : "A", o->b != NULL ? NULL : "B"};
  DflashStatus status = dflash_runs_read(&w->runs[0], places[0], error);
  if (status == DFLASH_OK && o->b != NULL) status = dflash_runs_read(&w->runs[1], places[1], error);
  for (int side = 0; side < 2 && status == DFLASH_OK; side++) {
    w->at[side] = dflash_runs_side(&w->runs[o->b != NULL ? side : 0], sides[side], &w->count[side]);
    if (w->at[side] == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for results");
    if (w->count[side] > 0) continue;
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: no bench record%s%s", places[side],
                            sides[side] != NULL ? " of side " : "", sides[side] != NULL ? sides[side] : "");
  }
  return status;
}

static DflashStatus write_markdown(const char *path, const DflashRunsComparison *comparison, DflashError *error) {
  DflashText text = {0};
  dflash_text_append(&text, "## Times compared\n\n");
  dflash_runs_markdown(&text, comparison);
  DflashStatus status = text.failed ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", path)
                                    : dflash_write_file(path, text.data, text.size, error);
  dflash_text_free(&text);
  return status;
}

static DflashStatus tell(const DflashCompareRunsOptions *o, const DflashRunsComparison *comparison, int result,
                         DflashError *error) {
  DflashStatus status = DFLASH_OK;
  if (!o->quiet) dflash_runs_print(stdout, comparison);
  if (!o->quiet) printf("exit status %d\n", result);
  if (o->json != NULL) status = dflash_runs_write(o->json, comparison, result, error);
  if (status == DFLASH_OK && o->markdown != NULL) status = write_markdown(o->markdown, comparison, error);
  return status;
}

int dflash_run_compare_runs(const DflashCompareRunsOptions *o) {
  Work w = {0};
  DflashError error = {0};
  int result = DFLASH_EXIT_BAD_INPUT;
  DflashStatus status = read_sides(o, &w, &error);
  if (status == DFLASH_OK)
    status = dflash_runs_compare(w.at[0], w.count[0], w.at[1], w.count[1], &o->rule, &w.comparison, &error);
  if (status == DFLASH_OK) {
    result = dflash_runs_comparison_exit(&w.comparison);
    status = tell(o, &w.comparison, result, &error);
  }
  if (status != DFLASH_OK) {
    dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
    result = dflash_status_exit(status);
  }
  dflash_runs_comparison_close(&w.comparison);
  for (int side = 0; side < 2; side++) {
    free(w.at[side]);
    dflash_runs_close(&w.runs[side]);
  }
  return result;
}
