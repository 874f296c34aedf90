/* The plain kernels: every stage, any geometry. */
#include "rows.cuh"

#include "prepare.cuh"

#include "product_i8.cuh"

#include "attend.cuh"

#include "select.cuh"

#include "measure.cuh"
