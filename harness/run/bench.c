#include "run/bench_case.h"
#include "run/job.h"

int dflash_run_bench(const DflashRunOptions *options) {
  DflashJob job = {.options = options, .command = "bench", .run_case = dflash_bench_case, .case_limit = 1};
  return dflash_job_run(&job);
}
