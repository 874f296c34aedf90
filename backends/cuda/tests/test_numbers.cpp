/* Cosine and sine as the kernels compute them, against the host's in f64. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {
#include <cmocka.h>
}

#include "../kernels/numbers.cuh"

/* The distance of two numbers, in steps of f32 at the true one. */
static double steps_apart(float got, double expected) {
  int exponent;
  frexp(expected, &exponent);
  const int step = exponent - 24 > -149 ? exponent - 24 : -149;
  return fabs((double)got - expected) / ldexp(1, step);
}

static double worst;

static void check(float angle) {
  float cosine, sine;
  cosine_sine(angle, &cosine, &sine);
  worst = fmax(worst, fmax(steps_apart(cosine, cos((double)angle)), steps_apart(sine, sin((double)angle))));
}

/* Angles of both signs whose bits are spread over all of f32. */
static void test_all_sizes(void **state) {
  (void)state;
  worst = 0;
  for (uint64_t bits = 0; bits < 0x7f800000u; bits += 7919) {
    check(__uint_as_float((uint32_t)bits));
    check(__uint_as_float((uint32_t)bits | 0x80000000u));
  }
  assert_true(worst < 0.51);
}

/* Those next to multiples of pi / 2, where most of the angle cancels. */
static void test_near_multiples(void **state) {
  (void)state;
  worst = 0;
  for (int n = 1; n < 200000; n++) {
    const float nearest = (float)(n * 1.5707963267948966);
    check(nearest);
    check(nextafterf(nearest, 0));
    check(nextafterf(nearest, 1e30f));
  }
  check(16367173.0f * ldexpf(1, 72)); /* of all f32 the nearest to a multiple */
  assert_true(worst < 0.51);
}

static void test_not_finite(void **state) {
  (void)state;
  const float none[] = {INFINITY, -INFINITY, NAN};
  for (const float x : none) {
    float cosine = 0, sine = 0;
    cosine_sine(x, &cosine, &sine);
    assert_true(std::isnan(cosine) && std::isnan(sine));
  }
}

int main() {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_sizes), cmocka_unit_test(test_near_multiples),
                                     cmocka_unit_test(test_not_finite)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
