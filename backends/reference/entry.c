#include "reference.h"

DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

const DflashBackend *dflash_backend(void) { return &reference_backend; }
