#include "base/error.h"
#include "base/log.h"
#include "run/bench_case.h"
#include "run/job.h"
#include "run/peers.h"

static int run(const DflashRunOptions *options) {
  DflashJob job = {.options = options, .command = "bench", .run_case = dflash_bench_case, .case_limit = 1};
  return dflash_job_run(&job);
}

int dflash_run_bench(const DflashRunOptions *options) {
  if (options->peers_path == NULL) return run(options);
  DflashRunOptions with = *options;
  DflashPeers peers;
  DflashError error = {0};
  int result = 0;
  with.peers = &peers;
  if (dflash_peers_read(options->peers_path, &peers, &error) == DFLASH_OK) {
    result = run(&with);
  } else {
    dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
    result = dflash_status_exit(error.status);
  }
  dflash_peers_close(&peers);
  return result;
}
