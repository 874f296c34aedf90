/* Runs a kernel's grid on the host, block after block. */
#ifndef DFLASH_CUDA_FIBERS_H
#define DFLASH_CUDA_FIBERS_H

#include <cstddef>
#include <functional>

#include "emulated.h"

/* False: threads of a block wait for each other forever. Threads of a block begin in order, or, where `backwards` is
 * set, in the opposite one: what is right without a wait between them in one order only is wrong. */
bool emulated_run(EmulatedDim grid, unsigned threads, size_t shared_bytes, bool backwards,
                  const std::function<void()> &kernel);

#endif
