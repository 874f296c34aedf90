/* Lines that `history import` reads, into a history that is emptied each time. What was taken comes out again, and is
 * known when it comes back. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "store/fields.h"
#include "store/history_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No disk is waited for: nothing here has to last. */
static DflashHistory *open_scratch(void) {
  char path[] = "/tmp/fuzz-history-XXXXXX";
  DflashHistory *history = NULL;
  int descriptor = mkstemp(path);
  if (descriptor < 0 || dflash_history_open(path, DFLASH_HISTORY_WRITE, &history, NULL) != DFLASH_OK) abort();
  close(descriptor);
  if (dflash_history_execute(history, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY", NULL) != DFLASH_OK)
    abort();
  unlink(path);
  return history;
}

static int append_line(void *context, const cJSON *record) {
  char *line = dflash_record_line(record);
  if (line == NULL) abort();
  dflash_text_append(context, "%s\n", line);
  free(line);
  return 0;
}

static void check_again(DflashHistory *history) {
  DflashText lines = {0};
  DflashHistoryCounts counts;
  int64_t results;
  if (dflash_history_export(history, &(DflashHistoryFilter){0}, append_line, &lines, &results, NULL) != DFLASH_OK)
    abort();
  if (lines.size > 0 &&
      (dflash_history_import_text(history, "again", lines.data, lines.size, &counts, NULL) != DFLASH_OK ||
       counts.runs + counts.results != 0))
    abort();
  dflash_text_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static DflashHistory *history; /* opening takes longer than all else */
  DflashHistoryCounts counts;
  if (history == NULL) history = open_scratch();
  if (dflash_history_import_text(history, "lines", (const char *)data, size, &counts, NULL) == DFLASH_OK)
    check_again(history);
  if (dflash_history_execute(history, "DELETE FROM run; DELETE FROM series", NULL) != DFLASH_OK) abort();
  return 0;
}
