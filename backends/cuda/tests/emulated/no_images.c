#include "device.h"

const CudaModule cuda_modules[] = {{"plain", "no image"}, {0}};
