#include "convolution.h"

#include <math.h>
#include <stdlib.h>

#include "values.h"

TestConvolution test_convolution_open(uint32_t rows, uint32_t width, uint32_t group, uint32_t taps) {
  TestConvolution c = {rows, width, group, width / group, taps, NULL, NULL, NULL};
  c.x = test_drawn((size_t)rows * width, "x");
  c.d = test_drawn((size_t)rows * 2 * taps * c.groups, "d");
  c.base = test_drawn((size_t)2 * taps * width, "base");
  return c;
}

void test_convolution_close(TestConvolution *c) {
  free(c->base);
  free(c->d);
  free(c->x);
}

TestArray test_convolution_x(const TestConvolution *c) {
  return (TestArray){c->x, (size_t)c->rows * c->width * sizeof(float)};
}

TestArray test_convolution_d(const TestConvolution *c) {
  return (TestArray){c->d, (size_t)c->rows * 2 * c->taps * c->groups * sizeof(float)};
}

TestArray test_convolution_base(const TestConvolution *c) {
  return (TestArray){c->base, (size_t)2 * c->taps * c->width * sizeof(float)};
}

DflashGeometry test_convolution_geometry(const TestConvolution *c) {
  return (DflashGeometry){.hidden = c->width, .conv_group = c->group, .conv_kernel = c->taps};
}

double test_convolution_at(const TestConvolution *c, uint32_t side, uint32_t row, uint32_t channel, double *size) {
  double sum = 0;
  *size = 0;
  for (uint32_t o = 0; o < c->taps && o <= row; o++) {
    const uint32_t tap = side * c->taps + o;
    const double base = c->base[tap * c->width + channel];
    const double dynamic = c->d[row * 2 * c->taps * c->groups + tap * c->groups + channel / c->group];
    const double x = c->x[(row - o) * c->width + channel];
    sum += (base + dynamic) * x;
    *size += (fabs(base) + fabs(dynamic)) * fabs(x);
  }
  return sum;
}
