/* A fixed set of threads that splits ranges. Results never depend on how a range was split:
 * that is the caller's part (each index writes its own place). */
#ifndef DFLASH_BASE_POOL_H
#define DFLASH_BASE_POOL_H

#include <stdint.h>

typedef struct DflashPool DflashPool;

/* threads < 1: one per CPU that this process may use. NULL: memory or threads are out. The caller's
 * thread is worker 0, so threads - 1 are started. Idle workers spin briefly, then sleep. */
DflashPool *dflash_pool_open(int threads);
void dflash_pool_close(DflashPool *pool);
int dflash_pool_threads(const DflashPool *pool); /* 1 for NULL */

/* Calls fn over 0 .. count in pieces of at least `grain`, on all workers; returns when all are done.
 * pool NULL: on the caller's thread. Pieces are claimed dynamically. Not reentrant. */
typedef void (*DflashRangeFn)(void *context, int64_t begin, int64_t end, int worker);
void dflash_pool_run(DflashPool *pool, int64_t count, int64_t grain, DflashRangeFn fn, void *context);

int dflash_cpu_count(void); /* CPUs in this process's affinity mask, at least 1 */

#endif
