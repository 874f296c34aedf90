/* The history as one of the store's writers. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/history_work.h"
#include "store/writer.h"

static DflashStatus writer_record(void *self, const cJSON *record, DflashError *error) {
  return dflash_history_work_take(self, record, error);
}

static DflashStatus writer_close(void *self, DflashError *error) {
  DflashHistoryWork *work = self;
  DflashStatus status = dflash_history_work_close(work, error);
  dflash_history_close(work->history);
  free(work);
  return status;
}

DflashStatus dflash_history_writer_open(const char *path, DflashWriter *writer, DflashError *error) {
  DflashHistoryWork *work = calloc(1, sizeof *work);
  if (!work) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its writer", path);
  DflashStatus status = dflash_history_open(path, DFLASH_HISTORY_WRITE, &work->history, error);
  if (status == DFLASH_OK)
    *writer = (DflashWriter){.self = work, .record = writer_record, .close = writer_close};
  else
    free(work);
  return status;
}
