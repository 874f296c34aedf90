#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "time/clock.h"

static void the_clock_ticks(void **state) {
  (void)state;
  DflashClockProof proof = {0};
  DflashError error = {0};
  assert_int_equal(dflash_clock_prove(dflash_clock_ns, &proof, &error), DFLASH_OK);
  assert_in_range(proof.resolution_ns, 1, 100000);
  assert_true(proof.cost_ns > 0 && proof.cost_ns < 100000);
  assert_true(proof.against_realtime > 0.99 && proof.against_realtime < 1.01);
}

static uint64_t still(void) { return 12345; }
static uint64_t half_rate(void) { return dflash_clock_ns() / 2; }
static uint64_t two_percent_fast(void) { return dflash_clock_ns() / 50 * 51; }
static uint64_t backwards(void) { return UINT64_MAX - dflash_clock_ns(); }

/* Steps back once, in the midst. */
static uint64_t one_step_back(void) {
  static uint64_t readings;
  return dflash_clock_ns() - (++readings == 5000 ? 1000000 : 0);
}

static void assert_refused(uint64_t (*now)(void), const char *reason) {
  DflashClockProof proof;
  DflashError error = {0};
  assert_int_equal(dflash_clock_prove(now, &proof, &error), DFLASH_INTERNAL);
  assert_non_null(strstr(error.message, reason));
}

static void bad_clocks_are_refused(void **state) {
  (void)state;
  assert_refused(still, "stood still");
  assert_refused(half_rate, "0.5");
  assert_refused(two_percent_fast, "1.02");
  assert_refused(backwards, "backwards");
  assert_refused(one_step_back, "backwards");
}

static void cpu_time_counts_work_only(void **state) {
  (void)state;
  uint64_t cpu = dflash_clock_cpu_ns(), wall = dflash_clock_ns();
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  assert_true(dflash_clock_cpu_ns() - cpu < (dflash_clock_ns() - wall) / 2);
  cpu = dflash_clock_cpu_ns();
  for (volatile int i = 0; i < 1000000;) i = i + 1;
  assert_true(dflash_clock_cpu_ns() > cpu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_clock_ticks),
      cmocka_unit_test(bad_clocks_are_refused),
      cmocka_unit_test(cpu_time_counts_work_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
