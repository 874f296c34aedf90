/* Stands between the backend's parts, by the linker's --wrap: images of the plant that an option names come before the
 * product's. One plant a process: that of the last model opened. */
#include "planted.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model.h"
#include "vtable.h"

extern const CudaModule __real_cuda_modules[];
extern CudaModule __wrap_cuda_modules[CUDA_MOST_MODULES + 1];
CudaModule __wrap_cuda_modules[CUDA_MOST_MODULES + 1];

DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = cuda_backend;
  backend.name = "cuda-planted";
  backend.about = "the CUDA backend with one thing wrong";
  return &backend;
}

static DflashStatus choose(const char *name, DflashError *error) {
  int count = 0;
  memset(__wrap_cuda_modules, 0, sizeof __wrap_cuda_modules);
  for (const CudaModule *p = cuda_plants; p->name; p++)
    if (strcmp(name, p->name) == 0 && count < CUDA_MOST_MODULES) __wrap_cuda_modules[count++] = *p;
  if (count == 0 && strcmp(name, "none") != 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: no plant '%s'", name);
  for (const CudaModule *p = __real_cuda_modules; p->name && count < CUDA_MOST_MODULES; p++)
    __wrap_cuda_modules[count++] = *p;
  return DFLASH_OK;
}

DflashStatus __real_cuda_options_read(const DflashModelDesc *desc, CudaOptions *options, DflashError *error);
DflashStatus __wrap_cuda_options_read(const DflashModelDesc *desc, CudaOptions *options, DflashError *error);

DflashStatus __wrap_cuda_options_read(const DflashModelDesc *desc, CudaOptions *options, DflashError *error) {
  DflashModelDesc rest = *desc;
  DflashOption *others = dflash_alloc(desc->option_count + 1, sizeof *others);
  if (!others) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for options");
  const char *plant = "none";
  rest.options = others;
  rest.option_count = 0;
  for (uint32_t i = 0; i < desc->option_count; i++) {
    if (desc->options[i].key && strcmp(desc->options[i].key, "plant") == 0)
      plant = desc->options[i].value;
    else
      others[rest.option_count++] = desc->options[i];
  }
  DflashStatus status = choose(plant, error);
  if (!status) status = __real_cuda_options_read(&rest, options, error);
  free(others);
  return status;
}
