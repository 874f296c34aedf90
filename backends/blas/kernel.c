#include "kernel.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Not every compiler's __builtin_cpu_supports knows f16c; the system's support for its registers is AVX's. */
static int has_f16c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static int runs_avx2(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#else
  return 0;
#endif
}

static int runs_avx512(void) {
#if defined(__x86_64__)
  return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
  return 0;
#endif
}

const DflashKernel *dflash_kernel_find(const char *name) {
  const DflashKernel *kernels[] = {runs_avx512() ? dflash_kernel_avx512() : NULL,
                                   runs_avx2() ? dflash_kernel_avx2() : NULL, dflash_kernel_plain()};
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
    if (kernels[i] && (strcmp(name, "auto") == 0 || strcmp(name, kernels[i]->name) == 0)) return kernels[i];
  return NULL;
}
