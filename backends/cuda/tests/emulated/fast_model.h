/* What kernels/fast/kernel.cuh computes, written down plainly: for the emulated driver, which has no tensor cores. */
#ifndef DFLASH_CUDA_EMULATED_FAST_MODEL_H
#define DFLASH_CUDA_EMULATED_FAST_MODEL_H

void emulated_fast_block(const void *arguments); /* a FastBlock; the whole block at once */
void emulated_fast_block_tall(const void *arguments);

#endif
