#include "load/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#define ADDRESS_MAX ((haddr_t)INT64_MAX)

typedef struct SinkFile {
  H5FD_t base; /* HDF5's own part comes first */
  int descriptor;
  haddr_t end_allocated, end_written;
  DflashSink *sink;
} SinkFile;

static void keep_reason(const SinkFile *file) {
  if (!file->sink->reason) file->sink->reason = errno ? errno : EIO;
}

static H5FD_t *sink_open(const char *name, unsigned flags, hid_t access_list, haddr_t max_address) {
  (void)max_address;
  DflashSink *const *sink = H5Pget_driver_info(access_list);
  SinkFile *file = sink ? calloc(1, sizeof *file) : NULL;
  if (!file) return NULL;
  struct stat info;
  int truncate = flags & H5F_ACC_TRUNC ? O_TRUNC : 0;
  file->sink = *sink;
  file->descriptor = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | truncate);
  if (file->descriptor >= 0 && fstat(file->descriptor, &info) == 0) {
    file->end_written = (haddr_t)info.st_size;
    return &file->base;
  }
  keep_reason(file);
  if (file->descriptor >= 0) close(file->descriptor);
  free(file);
  return NULL;
}

static herr_t sink_close(H5FD_t *base) {
  SinkFile *file = (SinkFile *)base;
  if (close(file->descriptor) != 0) keep_reason(file);
  free(file);
  return 0;
}

static herr_t sink_query(const H5FD_t *base, unsigned long *flags) {
  (void)base;
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

static haddr_t sink_get_eoa(const H5FD_t *base, H5FD_mem_t type) {
  (void)type;
  return ((const SinkFile *)base)->end_allocated;
}

static herr_t sink_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t address) {
  (void)type;
  ((SinkFile *)base)->end_allocated = address;
  return 0;
}

static haddr_t sink_get_eof(const H5FD_t *base, H5FD_mem_t type) {
  (void)type;
  return ((const SinkFile *)base)->end_written;
}

/* What was never written, or dropped, reads as zeros. */
static herr_t sink_read(H5FD_t *base, H5FD_mem_t type, hid_t list, haddr_t address, size_t size, void *buffer) {
  (void)type, (void)list;
  const SinkFile *file = (const SinkFile *)base;
  char *to = buffer;
  while (size > 0) {
    ssize_t got = pread(file->descriptor, to, size, (off_t)address);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) keep_reason(file);
    if (got <= 0) break;
    to += got;
    address += (haddr_t)got;
    size -= (size_t)got;
  }
  memset(to, 0, size);
  return 0;
}

static herr_t sink_write(H5FD_t *base, H5FD_mem_t type, hid_t list, haddr_t address, size_t size, const void *buffer) {
  (void)type, (void)list;
  SinkFile *file = (SinkFile *)base;
  const char *from = buffer;
  if (address + size > file->end_written) file->end_written = address + size;
  while (size > 0 && !file->sink->reason) {
    ssize_t put = pwrite(file->descriptor, from, size, (off_t)address);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      keep_reason(file);
      break;
    }
    from += put;
    address += (haddr_t)put;
    size -= (size_t)put;
  }
  return 0;
}

static herr_t sink_truncate(H5FD_t *base, hid_t list, hbool_t closing) {
  (void)list, (void)closing;
  SinkFile *file = (SinkFile *)base;
  if (file->end_allocated == file->end_written) return 0;
  if (!file->sink->reason && ftruncate(file->descriptor, (off_t)file->end_allocated) != 0) keep_reason(file);
  file->end_written = file->end_allocated;
  return 0;
}

static const H5FD_class_t sink_class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 300,
#endif
    .name = "dflash-sink",
    .maxaddr = ADDRESS_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(DflashSink *),
    .open = sink_open,
    .close = sink_close,
    .query = sink_query,
    .get_eoa = sink_get_eoa,
    .set_eoa = sink_set_eoa,
    .get_eof = sink_get_eof,
    .read = sink_read,
    .write = sink_write,
    .truncate = sink_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

bool dflash_sink_install(hid_t access_list, DflashSink *sink) {
  hid_t driver = H5FDregister(&sink_class);
  bool good = driver >= 0 && H5Pset_driver(access_list, driver, &sink) >= 0;
  dflash_h5_close(driver);
  return good;
}
