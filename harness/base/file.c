#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static DflashStatus fail_open(const char *path, DflashError *error) {
  return dflash_error_set(error, DFLASH_IO, "%s: cannot open: %s", path, strerror(errno));
}

static DflashStatus map_descriptor(int descriptor, const char *path, DflashMapping *mapping, DflashError *error) {
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return dflash_error_set(error, DFLASH_IO, "%s: cannot stat: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return dflash_error_set(error, DFLASH_IO, "%s: not a regular file", path);
  if (info.st_size == 0) return DFLASH_OK;
  /* Shared, so that the kernel's list tells these mappings from memory that holds the only copy of something. */
  void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) return dflash_error_set(error, DFLASH_IO, "%s: cannot map: %s", path, strerror(errno));
  *mapping = (DflashMapping){.data = data, .size = (uint64_t)info.st_size};
  return DFLASH_OK;
}

DflashStatus dflash_map_file(const char *path, DflashMapping *mapping, DflashError *error) {
  *mapping = (DflashMapping){0};
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail_open(path, error);
  DflashStatus status = map_descriptor(descriptor, path, mapping, error);
  close(descriptor);
  return status;
}

void dflash_unmap_file(DflashMapping *mapping) {
  if (mapping->data) munmap((void *)mapping->data, mapping->size);
  *mapping = (DflashMapping){0};
}

/* Whether begin .. end lies in one shared read-only mapping of a file, the only kind whose pages can be dropped
 * without losing what they hold. */
static int is_file_mapping(uintptr_t begin, uintptr_t end) {
  FILE *maps = fopen("/proc/self/maps", "re");
  if (!maps) return 0;
  char line[512];
  int found = 0;
  while (!found && fgets(line, sizeof line, maps)) {
    unsigned long long from, to, inode;
    char mode[5];
    if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %llu", &from, &to, mode, &inode) != 4) continue;
    found = from <= begin && end <= to && strcmp(mode, "r--s") == 0 && inode != 0;
  }
  fclose(maps);
  return found;
}

void dflash_map_release(const void *data, uint64_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data, end;
  if (!data || __builtin_add_overflow(begin, bytes, &end) || begin > UINTPTR_MAX - page) return;
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end && is_file_mapping(begin, end)) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Reads to the end of file, at most limit bytes; *size bytes are in *text, which has room for a NUL. */
static DflashStatus read_descriptor(int descriptor, const char *path, uint64_t limit, char **text, uint64_t *size,
                                    DflashError *error) {
  uint64_t capacity = 0;
  for (;;) {
    if (*size + 1 >= capacity) {
      capacity = capacity ? 2 * capacity : 4096;
      char *grown = realloc(*text, capacity);
      if (!grown)
        return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for %llu bytes", path,
                                (unsigned long long)capacity);
      *text = grown;
    }
    ssize_t got = read(descriptor, *text + *size, capacity - *size - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return dflash_error_set(error, DFLASH_IO, "%s: cannot read: %s", path, strerror(errno));
    *size += (uint64_t)got;
    if (*size > limit)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: larger than %llu bytes, the most that is read here",
                              path, (unsigned long long)limit);
    (*text)[*size] = '\0';
    if (got == 0) return DFLASH_OK;
  }
}

DflashStatus dflash_read_file(const char *path, uint64_t limit, char **text, uint64_t *size, DflashError *error) {
  *text = NULL;
  *size = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail_open(path, error);
  DflashStatus status = read_descriptor(descriptor, path, limit, text, size, error);
  close(descriptor);
  if (status == DFLASH_OK) return DFLASH_OK;
  free(*text);
  *text = NULL;
  *size = 0;
  return status;
}
