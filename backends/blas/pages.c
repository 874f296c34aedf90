#include "pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

bool dflash_pages_open(DflashPages *pages, uint64_t bytes) {
  *pages = (DflashPages){0};
  if (bytes == 0 || bytes > SIZE_MAX / 2) return bytes == 0;
  void *data = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return false;
#ifdef MADV_HUGEPAGE
  madvise(data, (size_t)bytes, MADV_HUGEPAGE); /* only faster: a refusal is no failure */
#endif
  *pages = (DflashPages){.data = data, .bytes = bytes};
  return true;
}

void dflash_pages_close(DflashPages *pages) {
  if (pages->data) munmap(pages->data, (size_t)pages->bytes);
  *pages = (DflashPages){0};
}

static uint64_t meminfo(const char *key) {
  FILE *file = fopen("/proc/meminfo", "re");
  if (!file) return 0;
  char line[128];
  uint64_t kilobytes = 0;
  while (fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), ": %" SCNu64, &kilobytes) == 1) break;
  fclose(file);
  return kilobytes * 1024;
}

uint64_t dflash_memory_total(void) { return meminfo("MemTotal"); }
uint64_t dflash_memory_available(void) { return meminfo("MemAvailable"); }
