/* kernels/plain.cu compiled for the host. */
#include "kernels.h"

#include "../../kernels/plain.cu"

#include "../../kernels/fast/pack.cuh"

#include "fast_model.h"

#define CALL(name, Arguments) \
  static void call_##name(const void *arguments) { dflash_##name(*static_cast<const Arguments *>(arguments)); }
CUDA_KERNELS(CALL)

CALL(fast_pack, FastPackArgs)

#define ROW(name, Arguments) {"dflash_" #name, sizeof(Arguments), call_##name, false},
/* The kernel of profile f16 takes the same; its activations are not rounded here. */
#define BLOCK(name, run) {name, sizeof(FastBlock), run, true},
const EmulatedKernel emulated_kernels[] = {
    CUDA_KERNELS(ROW) ROW(fast_pack, FastPackArgs) BLOCK("dflash_block", emulated_fast_block)
        BLOCK("dflash_block_f16", emulated_fast_block)
            BLOCK("dflash_block_f16_tall", emulated_fast_block_tall){nullptr, 0, nullptr, false}};
