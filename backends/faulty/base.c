/* The backend that computes what is right. */
#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"

/* The folder of this shared object. */
static const char here;

static DflashStatus find_file(const char *name, char *path, size_t size, DflashError *error) {
  Dl_info info;
  if (dladdr(&here, &info) == 0 || info.dli_fname == NULL)
    return dflash_error_set(error, DFLASH_INTERNAL, "faulty: cannot tell where it was loaded from");
  const char *slash = strrchr(info.dli_fname, '/');
  const int folder = slash != NULL ? (int)(slash - info.dli_fname) : 1;
  const char *from = slash != NULL ? info.dli_fname : ".";
  if (snprintf(path, size, "%.*s/dflash-backend-%s.so", folder, from, name) < (int)size) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNAVAILABLE, "faulty: the path of base %s is too long", name);
}

DflashStatus fault_base_load(const char *name, const DflashBackend **base, DflashError *error) {
  char path[PATH_MAX];
  DflashStatus status = find_file(name, path, sizeof path, error);
  if (status != DFLASH_OK) return status;
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == NULL) return dflash_error_set(error, DFLASH_UNAVAILABLE, "faulty: base %s: %s", name, dlerror());
  DflashBackendEntry entry = NULL;
  void *symbol = dlsym(object, DFLASH_BACKEND_SYMBOL);
  memcpy(&entry, &symbol, sizeof entry);
  const DflashBackend *found = entry != NULL ? entry() : NULL;
  dlclose(object); /* it stays mapped */
  if (found == NULL || found->abi != DFLASH_BACKEND_ABI || found->struct_size < sizeof(DflashBackend))
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "faulty: %s is no backend of ABI %d", path, DFLASH_BACKEND_ABI);
  *base = found;
  return DFLASH_OK;
}
