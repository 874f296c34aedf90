/* A management library that says what a test tells it to. */
#ifndef DFLASH_VULKAN_TESTS_FAKE_NVML_H
#define DFLASH_VULKAN_TESTS_FAKE_NVML_H

enum { FAKE_PROCESSES = 300 };

/* Results are those of the library: 0 is success. */
typedef struct FakeNvml {
  int init, find, clock, temperature, power, throttle, compute, graphics; /* results of the calls */
  const char *pci;                                                        /* the address that is known */
  unsigned compute_ids[FAKE_PROCESSES], graphics_ids[FAKE_PROCESSES];
  unsigned compute_count, graphics_count;
  int starts, ends; /* calls of init and shutdown that succeeded */
} FakeNvml;

/* The library exports it as the variable fake_nvml. */
#define FAKE_NVML_SYMBOL "fake_nvml"

#endif
