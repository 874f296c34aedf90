/* The plain kernels: every stage, any geometry. */
#include "rows.cuh"

#include "prepare.cuh"

#include "product_i8.cuh"

#include "tiled/parts.cuh"

#include "tiled/product.cuh"

#include "tiled/sum.cuh"

#include "attend.cuh"

#include "select.cuh"

#include "measure.cuh"
