/* kernels/plain.cu compiled for the host. */
#include "kernels.h"

#include "../../kernels/plain.cu"

#define CALL(name, Arguments) \
  static void call_##name(const void *arguments) { dflash_##name(*static_cast<const Arguments *>(arguments)); }
CUDA_KERNELS(CALL)

#define ROW(name, Arguments) {"dflash_" #name, sizeof(Arguments), call_##name},
const EmulatedKernel emulated_kernels[] = {CUDA_KERNELS(ROW){nullptr, 0, nullptr}};
