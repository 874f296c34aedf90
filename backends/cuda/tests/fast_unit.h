/* A unit of the fast kernel's weights at a block's columns, taken apart as the kernel's fragments take it. */
#ifndef DFLASH_CUDA_FAST_UNIT_H
#define DFLASH_CUDA_FAST_UNIT_H

#include <vector>

struct FastUnit {
  int cols;
  /* [64][columns]: nibbles, or int8 plus 128; of q4tp [64][groups]. -1: not found */
  std::vector<int> weights, codes;
  explicit FastUnit(int columns);
  /* Fails where something is found twice; returns where the unit ends. */
  const unsigned char *unpack(int product, const unsigned char *unit);
};

#endif
