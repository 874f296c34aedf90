/* Vector types of LANES elements. Loose ones may stand at any address of their element and alias anything. */
#include "kernel.h"

typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t LanesWord __attribute__((vector_size(4 * LANES)));
typedef int32_t LanesInt __attribute__((vector_size(4 * LANES)));
typedef float LanesLoose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t LanesWordLoose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
