/* Large zeroed memory in huge pages where the system gives them; untouched pages cost nothing. */
#ifndef DFLASH_BLAS_PAGES_H
#define DFLASH_BLAS_PAGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct DflashPages {
  void *data; /* NULL: not open */
  uint64_t bytes;
} DflashPages;

bool dflash_pages_open(DflashPages *pages, uint64_t bytes);
void dflash_pages_close(DflashPages *pages); /* safe on what is not open */

/* MemTotal and MemAvailable of /proc/meminfo in bytes; 0: not readable. */
uint64_t dflash_memory_total(void);
uint64_t dflash_memory_available(void);

#endif
