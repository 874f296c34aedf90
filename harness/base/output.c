#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/unfinished.h"

static DflashStatus fail(DflashOutput *output, const char *what, int reason, DflashError *error) {
  DflashStatus status = dflash_error_set(error, DFLASH_IO, "%s: cannot %s: %s", output->path, what, strerror(reason));
  dflash_output_abort(output);
  return status;
}

/* Renaming over a device or a folder would destroy it or fail late. */
static DflashStatus check_target(const char *path, DflashError *error) {
  struct stat info;
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
    return dflash_error_set(error, DFLASH_IO, "%s: exists and is not a regular file", path);
  return DFLASH_OK;
}

DflashStatus dflash_output_open(DflashOutput *output, const char *path, DflashError *error) {
  *output = (DflashOutput){.descriptor = -1, .unfinished = -1};
  DflashStatus status = check_target(path, error);
  if (status != DFLASH_OK) return status;
  output->path = strdup(path);
  if (!output->path || asprintf(&output->temporary, "%s.tmp-%ld", path, (long)getpid()) < 0) {
    output->temporary = NULL;
    dflash_output_abort(output);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its name", path);
  }
  unlink(output->temporary); /* left by a crash of an earlier process with this number */
  output->descriptor = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (output->descriptor < 0) return fail(output, "create beside it", errno, error);
  output->unfinished = dflash_unfinished_add(output->temporary);
  dflash_size_limit_ignore(); /* the file may be written through its name too */
  return DFLASH_OK;
}

DflashStatus dflash_write_all(int descriptor, const char *path, const void *data, size_t bytes, DflashError *error) {
  dflash_size_limit_ignore();
  for (const char *from = data; bytes > 0;) {
    ssize_t written = write(descriptor, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return dflash_error_set(error, DFLASH_IO, "%s: cannot write: %s", path, strerror(errno));
    from += written;
    bytes -= (size_t)written;
  }
  return DFLASH_OK;
}

DflashStatus dflash_output_write(DflashOutput *output, const void *data, size_t bytes, DflashError *error) {
  if (output->descriptor < 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: written after it was closed",
                            output->path ? output->path : "output");
  DflashStatus status = dflash_write_all(output->descriptor, output->path, data, bytes, error);
  if (status != DFLASH_OK) dflash_output_abort(output);
  return status;
}

/* Makes the new name durable. Some file systems cannot; the file itself is safe already. */
static void sync_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
  int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
  free(folder);
}

static void release(DflashOutput *output) {
  dflash_unfinished_release(output->unfinished);
  free(output->path);
  free(output->temporary);
  *output = (DflashOutput){.descriptor = -1, .unfinished = -1};
}

DflashStatus dflash_output_commit(DflashOutput *output, DflashError *error) {
  if (output->descriptor < 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: committed after it was closed",
                            output->path ? output->path : "output");
  if (fsync(output->descriptor) != 0) return fail(output, "write", errno, error);
  int closed = close(output->descriptor);
  output->descriptor = -1;
  if (closed != 0) return fail(output, "write", errno, error);
  if (rename(output->temporary, output->path) != 0) return fail(output, "rename to it", errno, error);
  sync_folder(output->path);
  release(output);
  return DFLASH_OK;
}

void dflash_output_abort(DflashOutput *output) {
  if (output->temporary) {
    if (output->descriptor >= 0) close(output->descriptor);
    unlink(output->temporary);
  }
  release(output);
}

DflashStatus dflash_write_file(const char *path, const void *data, size_t bytes, DflashError *error) {
  DflashOutput output;
  DflashStatus status = dflash_output_open(&output, path, error);
  if (status == DFLASH_OK) status = dflash_output_write(&output, data, bytes, error);
  if (status == DFLASH_OK) status = dflash_output_commit(&output, error);
  return status;
}
