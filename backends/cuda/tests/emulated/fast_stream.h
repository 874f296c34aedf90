/* The fast kernel's weights, read chunk by chunk as its blocks of threads read them. */
#ifndef DFLASH_CUDA_EMULATED_FAST_STREAM_H
#define DFLASH_CUDA_EMULATED_FAST_STREAM_H

#include <cstddef>
#include <vector>

#include "../../kernels/fast/arguments.h"

typedef std::vector<float> FastValues; /* [rows][width] */

struct FastStream {
  FastStream(const FastBlock &block, int rows); /* 8 or 16 */
  /* Those of the product that comes next. */
  std::vector<FastValues> vectors(int product) const;
  /* x is [rows][columns]; returns [parts of the columns][rows][64 * units]. Products come in the stream's order. */
  FastValues multiply(int product, const FastValues &x);

private:
  template <class Column> FastValues multiply_columns(int product, const FastValues &x);
  const FastBlock &b;
  const size_t height; /* rows */
  int count;           /* of the products before */
  std::vector<const unsigned char *> blocks;
};

/* Parts of a product's columns that different clusters have. */
int fast_stream_parts(int product);

#endif
