/* What --option sets for this backend. */
#ifndef DFLASH_BLAS_OPTIONS_H
#define DFLASH_BLAS_OPTIONS_H

#include <stdbool.h>

#include "dflash/backend.h"
#include "kernel.h"

/* One line for the vtable; the keys that dflash_options_parse knows. */
#define DFLASH_BLAS_OPTIONS                                                                                     \
  "threads=N (default: all CPUs), form=auto|f32|stored (auto), memory=BYTES|SHARE of what is available (90%), " \
  "keep=window|all (window), kernel=auto|avx512|avx2|plain (auto)"

enum { FORM_CHOICE_AUTO, FORM_CHOICE_F32, FORM_CHOICE_STORED };

typedef struct DflashHostOptions {
  int threads; /* at least 1 */
  int form;    /* FORM_CHOICE_* */
  uint64_t memory;
  bool keep_all;
  const DflashKernel *kernel;
} DflashHostOptions;

DflashStatus dflash_options_parse(const DflashModelDesc *desc, DflashHostOptions *options, DflashError *error);

#endif
