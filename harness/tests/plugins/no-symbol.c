/* A shared object that is no backend. */
#include "harness/tests/plugins/plugin.h"

DFLASH_BACKEND_EXPORT const DflashBackend *not_a_backend(void);

const DflashBackend *not_a_backend(void) { return &reference_backend; }
