/* The backend as the harness sees it. */
#ifndef DFLASH_CUDA_VTABLE_H
#define DFLASH_CUDA_VTABLE_H

#include "dflash/backend.h"

extern const DflashBackend cuda_backend;

#endif
