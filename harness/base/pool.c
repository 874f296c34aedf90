#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* How a job is shared out. `ticket` holds the job's number in the upper 32 bits, then 16 bits of how many pieces it
 * has, then 16 bits of the next unclaimed one. A worker reads the ticket, then the job, then claims the piece by
 * compare-and-swap of the ticket. The job is written only before its number appears in the ticket, and is not replaced
 * while one of its pieces is unclaimed, because the caller waits for all of them: so a claim that succeeds proves that
 * what was read was the job of that number. A worker that sleeps or is late is not waited for. */
enum { MAX_THREADS = 1024, PIECES_PER_THREAD = 4, SPIN_NS = 30000 };

static uint64_t ticket_make(uint64_t job, int pieces) { return job << 32 | (uint64_t)pieces << 16; }
static uint64_t ticket_job(uint64_t ticket) { return ticket >> 32; }
static int ticket_pieces(uint64_t ticket) { return (int)(ticket >> 16 & 0xffff); }
static int ticket_next(uint64_t ticket) { return (int)(ticket & 0xffff); }

typedef struct Worker {
  DflashPool *pool;
  pthread_t thread;
  int number;
} Worker;

struct DflashPool {
  int threads, started;
  Worker *workers; /* [threads - 1], numbers from 1 */
  pthread_mutex_t mutex;
  pthread_cond_t work, finished;
  atomic_bool stop;
  atomic_int sleepers; /* workers at, or on their way to, the condition */
  atomic_bool caller_sleeps;
  /* the job */
  _Atomic(DflashRangeFn) fn;
  _Atomic(void *) context;
  atomic_int_least64_t count;
  _Alignas(64) atomic_uint_least64_t ticket;
  _Alignas(64) atomic_int done; /* pieces of this job that have returned */
};

int dflash_cpu_count(void) {
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t *set = CPU_ALLOC((size_t)cpus);
    if (!set) return 1;
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
    int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return 1;
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int64_t piece_begin(int64_t count, int pieces, int piece) {
  int64_t size = count / pieces, longer = count % pieces;
  return size * piece + (piece < longer ? piece : longer);
}

static void report_done(DflashPool *pool, int pieces) {
  if (atomic_fetch_add(&pool->done, 1) + 1 != pieces || !atomic_load(&pool->caller_sleeps)) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_signal(&pool->finished);
  pthread_mutex_unlock(&pool->mutex);
}

/* Runs pieces until none is unclaimed. */
static void work(DflashPool *pool, int worker) {
  uint64_t ticket = atomic_load(&pool->ticket);
  for (;;) {
    int piece = ticket_next(ticket), pieces = ticket_pieces(ticket);
    if (piece >= pieces) return;
    int64_t count = atomic_load(&pool->count);
    DflashRangeFn fn = atomic_load(&pool->fn);
    void *context = atomic_load(&pool->context);
    if (!atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket + 1)) continue;
    fn(context, piece_begin(count, pieces, piece), piece_begin(count, pieces, piece + 1), worker);
    report_done(pool, pieces);
    ticket = atomic_load(&pool->ticket);
  }
}

static bool has_news(DflashPool *pool, uint64_t seen_job) {
  return ticket_job(atomic_load(&pool->ticket)) != seen_job || atomic_load(&pool->stop);
}

static bool spin_for_news(DflashPool *pool, uint64_t seen_job) {
  for (uint64_t end = now_ns() + SPIN_NS; now_ns() < end;)
    for (int i = 0; i < 32; i++) {
      if (has_news(pool, seen_job)) return true;
      relax();
    }
  return false;
}

static void sleep_for_news(DflashPool *pool, uint64_t seen_job) {
  pthread_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->sleepers, 1); /* before the look at the ticket: see publish */
  while (!has_news(pool, seen_job)) pthread_cond_wait(&pool->work, &pool->mutex);
  atomic_fetch_sub(&pool->sleepers, 1);
  pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument) {
  const Worker *worker = argument;
  DflashPool *pool = worker->pool;
  uint64_t seen_job = 0;
  for (;;) {
    if (!spin_for_news(pool, seen_job)) sleep_for_news(pool, seen_job);
    if (atomic_load(&pool->stop)) return NULL;
    seen_job = ticket_job(atomic_load(&pool->ticket));
    work(pool, worker->number);
  }
}

/* Signals stay with the threads that the program made itself. */
static bool start_workers(DflashPool *pool) {
  sigset_t all, kept;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &kept);
  while (pool->started < pool->threads - 1) {
    Worker *worker = &pool->workers[pool->started];
    *worker = (Worker){.pool = pool, .number = pool->started + 1};
    if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) break;
    pool->started++;
  }
  pthread_sigmask(SIG_SETMASK, &kept, NULL);
  return pool->started == pool->threads - 1;
}

DflashPool *dflash_pool_open(int threads) {
  if (threads < 1) threads = dflash_cpu_count();
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  DflashPool *pool = aligned_alloc(_Alignof(DflashPool), sizeof *pool);
  if (!pool) return NULL;
  *pool = (DflashPool){.threads = threads};
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->finished, NULL);
  pool->workers = calloc((size_t)threads, sizeof *pool->workers);
  if (pool->workers && start_workers(pool)) return pool;
  dflash_pool_close(pool);
  return NULL;
}

void dflash_pool_close(DflashPool *pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->mutex);
  atomic_store(&pool->stop, true);
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->mutex);
  for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->finished);
  pthread_cond_destroy(&pool->work);
  pthread_mutex_destroy(&pool->mutex);
  free(pool->workers);
  free(pool);
}

int dflash_pool_threads(const DflashPool *pool) { return pool ? pool->threads : 1; }

/* The ticket is stored before sleepers is read, a sleeper counts itself before it reads the ticket: one of the two
 * sees the other. */
static void publish(DflashPool *pool, int64_t count, int pieces, DflashRangeFn fn, void *context) {
  uint64_t job = ticket_job(atomic_load(&pool->ticket)) + 1;
  atomic_store(&pool->done, 0);
  atomic_store(&pool->count, count);
  atomic_store(&pool->fn, fn);
  atomic_store(&pool->context, context);
  atomic_store(&pool->ticket, ticket_make(job, pieces));
  if (atomic_load(&pool->sleepers) == 0) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->mutex);
}

static void wait_for_done(DflashPool *pool, int pieces) {
  for (uint64_t end = now_ns() + SPIN_NS; now_ns() < end;)
    for (int i = 0; i < 32; i++) {
      if (atomic_load(&pool->done) == pieces) return;
      relax();
    }
  pthread_mutex_lock(&pool->mutex);
  atomic_store(&pool->caller_sleeps, true); /* before the look at done, as above */
  while (atomic_load(&pool->done) != pieces) pthread_cond_wait(&pool->finished, &pool->mutex);
  atomic_store(&pool->caller_sleeps, false);
  pthread_mutex_unlock(&pool->mutex);
}

void dflash_pool_run(DflashPool *pool, int64_t count, int64_t grain, DflashRangeFn fn, void *context) {
  if (count <= 0) return;
  int64_t pieces = grain > 1 ? count / grain : count;
  if (pieces > (int64_t)dflash_pool_threads(pool) * PIECES_PER_THREAD)
    pieces = (int64_t)dflash_pool_threads(pool) * PIECES_PER_THREAD;
  if (dflash_pool_threads(pool) == 1 || pieces < 2) {
    fn(context, 0, count, 0);
    return;
  }
  publish(pool, count, (int)pieces, fn, context);
  work(pool, 0);
  wait_for_done(pool, (int)pieces);
}
