#include "run/job.h"
#include "run/verify_case.h"

int dflash_run_verify(const DflashRunOptions *options) {
  DflashJob job = {.options = options, .command = "verify", .run_case = dflash_verify_case};
  return dflash_job_run(&job);
}
