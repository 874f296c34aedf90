/* Files of bench records with times that a test chooses. */
#ifndef DFLASH_TESTS_BENCH_RECORDS_H
#define DFLASH_TESTS_BENCH_RECORDS_H

enum { BENCH_GROUPS = 3 }; /* "qkv" 30%, "attention" 50%, "head" 20% of the block */

/* What every process of a file is; zeros hold where nothing is said. */
typedef struct BenchFile {
  int processes, samples; /* samples: of each process (32) */
  double block;           /* ns; processes spread over +-0.2% around it */
  int slow;               /* group, from 1, that takes slow_by times as long; 0: none */
  double slow_by;
  int minute, step;                                /* the first process's time, and minutes from one to the next (2) */
  const char *golden, *profile, *device, *outcome; /* "g" (a hash), "exact", "cpu", "pass" */
  const char *side;                                /* of pairs; NULL: none */
  double load;                                     /* over a minute, on 2 CPUs */
  int cold, throttled;
} BenchFile;

/* Written to path, or appended. */
void write_bench_file(const char *path, const BenchFile *file);
void append_bench_file(const char *path, const BenchFile *file);

#endif
