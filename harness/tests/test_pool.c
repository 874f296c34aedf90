#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/pool.h"

enum { MOST = 5000 };

typedef struct Job {
  int seen[MOST]; /* plain on purpose: two workers on one index are a race that a checker reports */
  atomic_int pieces, smallest, worst_worker;
} Job;

static void mark(void *context, int64_t begin, int64_t end, int worker) {
  Job *job = context;
  for (int64_t i = begin; i < end; i++) job->seen[i]++;
  atomic_fetch_add(&job->pieces, 1);
  int size = (int)(end - begin), smallest = atomic_load(&job->smallest);
  while (size < smallest && !atomic_compare_exchange_weak(&job->smallest, &smallest, size)) {
  }
  int worst = atomic_load(&job->worst_worker);
  while (worker > worst && !atomic_compare_exchange_weak(&job->worst_worker, &worst, worker)) {
  }
}

static void run_and_check(DflashPool *pool, int64_t count, int64_t grain) {
  static Job job;
  memset(&job, 0, sizeof job);
  atomic_store(&job.smallest, MOST);
  dflash_pool_run(pool, count, grain, mark, &job);
  for (int64_t i = 0; i < MOST; i++) assert_int_equal(job.seen[i], i < count);
  assert_true(atomic_load(&job.worst_worker) < dflash_pool_threads(pool));
  if (grain > 1 && count >= grain) assert_true(atomic_load(&job.smallest) >= grain);
}

static void every_index_once(void **state) {
  (void)state;
  for (int threads = 1; threads <= 7; threads += 3) {
    DflashPool *pool = dflash_pool_open(threads);
    assert_non_null(pool);
    assert_int_equal(dflash_pool_threads(pool), threads);
    static const int64_t counts[] = {0, 1, 2, 3, 27, 28, 29, 64, 1000, 4999};
    static const int64_t grains[] = {-1, 0, 1, 2, 7, 1000, 100000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
      for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) run_and_check(pool, counts[c], grains[g]);
    dflash_pool_close(pool);
  }
}

static void null_pool_is_the_caller(void **state) {
  (void)state;
  assert_int_equal(dflash_pool_threads(NULL), 1);
  run_and_check(NULL, 100, 1);
  dflash_pool_close(NULL);
}

static void defaults_to_the_affinity_mask(void **state) {
  (void)state;
  assert_true(dflash_cpu_count() >= 1);
  DflashPool *pool = dflash_pool_open(0);
  assert_int_equal(dflash_pool_threads(pool), dflash_cpu_count());
  dflash_pool_close(pool);
}

static void add(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  atomic_fetch_add((atomic_long *)context, end - begin);
}

/* Jobs in quick succession, then ones between which the workers have gone to sleep. */
static void many_jobs(void **state) {
  (void)state;
  DflashPool *pool = dflash_pool_open(4);
  for (int job = 0; job < 3000; job++) {
    atomic_long sum = 0;
    dflash_pool_run(pool, 2 + job % 50, 1, add, &sum);
    assert_int_equal(sum, 2 + job % 50);
  }
  for (int job = 0; job < 30; job++) {
    nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    atomic_long sum = 0;
    dflash_pool_run(pool, 1000, 1, add, &sum);
    assert_int_equal(sum, 1000);
  }
  dflash_pool_close(pool);
}

typedef struct Slow {
  atomic_long sum;
  atomic_int begun; /* pieces of other workers */
} Slow;

/* The caller holds its piece until another worker has one, which then takes long. */
static void nap(void *context, int64_t begin, int64_t end, int worker) {
  Slow *slow = context;
  if (worker > 0) atomic_fetch_add(&slow->begun, 1);
  for (int ms = 0; worker == 0 && atomic_load(&slow->begun) == 0 && ms < 2000; ms++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (worker > 0) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  atomic_fetch_add(&slow->sum, end - begin);
}

/* The caller has to sleep until a slow worker has finished. */
static void waits_for_slow_workers(void **state) {
  (void)state;
  DflashPool *pool = dflash_pool_open(3);
  for (int i = 0; i < 5; i++) {
    Slow slow = {0};
    dflash_pool_run(pool, 100, 1, nap, &slow);
    assert_int_equal(slow.sum, 100);
    assert_true(slow.begun > 0);
  }
  dflash_pool_close(pool);
}

static void opened_and_closed_at_once(void **state) {
  (void)state;
  for (int i = 0; i < 50; i++) dflash_pool_close(dflash_pool_open(1 + i % 5));
}

static void last_of(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  if (end == INT64_MAX) atomic_store((atomic_long *)context, 1);
  assert_true(begin >= 0 && begin < end);
}

static void huge_counts_do_not_overflow(void **state) {
  (void)state;
  DflashPool *pool = dflash_pool_open(2);
  atomic_long reached = 0;
  dflash_pool_run(pool, INT64_MAX, 1, last_of, &reached);
  assert_int_equal(reached, 1);
  dflash_pool_close(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_index_once),
      cmocka_unit_test(null_pool_is_the_caller),
      cmocka_unit_test(defaults_to_the_affinity_mask),
      cmocka_unit_test(many_jobs),
      cmocka_unit_test(waits_for_slow_workers),
      cmocka_unit_test(opened_and_closed_at_once),
      cmocka_unit_test(huge_counts_do_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
