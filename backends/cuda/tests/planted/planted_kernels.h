/* The kernels of a plant, compiled for the host: a library of its own, which the emulated driver loads. */
#ifndef DFLASH_CUDA_TESTS_PLANTED_KERNELS_H
#define DFLASH_CUDA_TESTS_PLANTED_KERNELS_H

#include "kernels.h"

template <auto RUN> struct Planted;
template <class Arguments, void (*RUN)(Arguments)> struct Planted<RUN> {
  enum { BYTES = sizeof(Arguments) };
  static void call(const void *arguments) { RUN(*static_cast<const Arguments *>(arguments)); }
};

#define ROW(name) {"dflash_" #name, Planted<dflash_##name>::BYTES, Planted<dflash_##name>::call, false},
#define PLANTED(rows)                               \
  extern "C" __attribute__((visibility("default"))) \
  const EmulatedKernel emulated_planted_kernels[] = {rows{nullptr, 0, nullptr, false}};

#endif
