/* Backends as shared objects: finding, loading, checking. */
#ifndef DFLASH_RUN_LOADER_H
#define DFLASH_RUN_LOADER_H

#include <stddef.h>

#include "dflash/backend.h"

typedef struct DflashLoaded {
  void *library;
  const DflashBackend *backend;
  char path[1024];
} DflashLoaded;

/* `name` is a backend's name ("blas": dflash-backend-blas.so in the search path) or a path to a shared object
 * (it holds a '/'). search (may be NULL): folders or files joined by ':', looked at before the environment's
 * DFLASH_BACKEND_PATH, the folder "backends" beside the program, and the install folder.
 * Not found: DFLASH_UNAVAILABLE, listing what exists. Wrong ABI, size, symbol, missing required member:
 * DFLASH_UNAVAILABLE with both numbers or the member's name. Loading runs foreign code: do it in a child. */
DflashStatus dflash_backend_load(const char *name, const char *search, DflashLoaded *loaded, DflashError *error);
void dflash_backend_unload(DflashLoaded *loaded);

/* Every place of a search path that a user gave must exist: DFLASH_INVALID_ARGUMENT names the first that does not. */
DflashStatus dflash_backend_check_search(const char *search, DflashError *error);

/* Calls found for every file dflash-backend-*.so of the search path, the first of each name. */
void dflash_backend_find(const char *search, void (*found)(void *context, const char *name, const char *path),
                         void *context);

/* 1 when the loaded struct is large enough to have this optional member and it is set. */
#define DFLASH_BACKEND_HAS(backend, member) \
  ((backend)->struct_size >= offsetof(DflashBackend, member) + sizeof((backend)->member) && (backend)->member != NULL)

#endif
