#include "base/log.h"
#include "base/text.h"
#include "run/job.h"
#include "run/verify_case.h"

/* The modes as records write them: in the order of the enumeration. */
static const char *modes_text(unsigned modes, DflashText *text) {
  for (int mode = 0; mode < DFLASH_MODE_COUNT; mode++)
    if (modes & 1u << mode) dflash_text_append(text, "%s%s", text->size > 0 ? "," : "", dflash_mode_name(mode));
  return text->data;
}

int dflash_run_verify(const DflashRunOptions *options) {
  DflashText modes = {0};
  DflashJob job = {.options = options, .run_case = dflash_verify_case, .modes = modes_text(options->modes, &modes)};
  int result = dflash_job_run(&job);
  dflash_text_free(&modes);
  return result;
}
