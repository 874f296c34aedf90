#include "store/history_parts.h"

/* What goes: older than the time, and beyond the newest of its series. */
static DflashStatus choose(DflashHistory *h, const DflashHistoryPrune *what, DflashError *error) {
  DflashStatus status =
      dflash_history_execute(h, "CREATE TEMP TABLE gone (id INTEGER PRIMARY KEY, run INTEGER)", error);
  if (status == DFLASH_OK)
    status = dflash_history_do(
        h, error,
        "INSERT INTO gone SELECT id, run FROM (SELECT id, run, time, row_number() OVER (PARTITION BY series"
        " ORDER BY time DESC, id DESC) AS place FROM result) WHERE (?1 = 0 OR time < ?1) AND place > ?2",
        "ii", what->before, what->keep);
  return status;
}

/* Runs whose results all go, and old ones that never had any. */
#define GONE_RUNS                                                                   \
  "SELECT id FROM run WHERE (id IN (SELECT run FROM gone) OR ?1 > 0 AND time < ?1)" \
  " AND NOT EXISTS (SELECT 1 FROM result WHERE result.run = run.id AND result.id NOT IN (SELECT id FROM gone))"

static DflashStatus count(DflashHistory *h, const DflashHistoryPrune *what, int64_t *results, int64_t *runs,
                          DflashError *error) {
  DflashStatus status = dflash_history_number(h, results, error, "SELECT count(*) FROM gone", "");
  if (status == DFLASH_OK)
    status = dflash_history_number(h, runs, error, "SELECT count(*) FROM (" GONE_RUNS ")", "i", what->before);
  return status;
}

static DflashStatus remove_rows(DflashHistory *h, const DflashHistoryPrune *what, DflashError *error) {
  DflashStatus status = dflash_history_do(h, error, "DELETE FROM run WHERE id IN (" GONE_RUNS ")", "i", what->before);
  if (status == DFLASH_OK)
    status = dflash_history_execute(h,
                                    "DELETE FROM result WHERE id IN (SELECT id FROM gone);"
                                    "DELETE FROM series WHERE id NOT IN (SELECT series FROM result)",
                                    error);
  return status;
}

DflashStatus dflash_history_prune(DflashHistory *h, const DflashHistoryPrune *what, int64_t *results, int64_t *runs,
                                  DflashError *error) {
  DflashStatus status = dflash_history_begin(h, error);
  *results = *runs = 0;
  if (status != DFLASH_OK) return status;
  status = choose(h, what, error);
  if (status == DFLASH_OK) status = count(h, what, results, runs, error);
  bool some = *results + *runs > 0 && !what->dry_run;
  if (status == DFLASH_OK && some) status = remove_rows(h, what, error);
  if (status == DFLASH_OK) status = dflash_history_execute(h, "DROP TABLE gone", error);
  status = dflash_history_end(h, status, error);
  return status == DFLASH_OK && some ? dflash_history_execute(h, "VACUUM", error) : status;
}
