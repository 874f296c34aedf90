/* Files: mapped for reading, written beside their place and renamed. */
#ifndef DFLASH_BASE_FILE_H
#define DFLASH_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "dflash/status.h"

typedef struct DflashMapping {
  const unsigned char *data; /* NULL for an empty file */
  uint64_t size;
} DflashMapping;

/* Maps a regular file read-only. Fails with DFLASH_IO naming the path and the system's reason. */
DflashStatus dflash_map_file(const char *path, DflashMapping *mapping, DflashError *error);
void dflash_unmap_file(DflashMapping *mapping);
/* The pages of data .. data + bytes are not needed any more (they can be read again). Any range is safe. */
void dflash_map_release(const void *data, uint64_t bytes);

/* Reads a whole small file (at most limit bytes) into a NUL-terminated buffer; free() releases. */
DflashStatus dflash_read_file(const char *path, uint64_t limit, char **text, uint64_t *size, DflashError *error);

/* Writes all bytes to a descriptor; DFLASH_IO names path and the system's reason. Makes the process ignore SIGXFSZ
 * (where its action is the default), so that a file-size limit is an error with a text. */
DflashStatus dflash_write_all(int descriptor, const char *path, const void *data, size_t bytes, DflashError *error);

/* A file that appears under its name only when it is whole: written as "<path>.tmp-<pid>" in the same
 * folder, then synced and renamed. Abort, a failed write or commit, and an end by SIGINT, SIGTERM, SIGHUP, SIGQUIT or
 * SIGPIPE (where the program left their default actions) leave nothing; a crash leaves the temporary file. SIGXFSZ as
 * above. A path that exists and is no regular file is refused. */
typedef struct DflashOutput {
  char *path, *temporary;
  int descriptor; /* open for writing; -1 when closed */
  int unfinished; /* place in the list of files that a signal removes */
} DflashOutput;

DflashStatus dflash_output_open(DflashOutput *output, const char *path, DflashError *error);
DflashStatus dflash_output_write(DflashOutput *output, const void *data, size_t bytes, DflashError *error);
DflashStatus dflash_output_commit(DflashOutput *output, DflashError *error); /* closes, on failure removes */
void dflash_output_abort(DflashOutput *output);                              /* safe after commit */
DflashStatus dflash_write_file(const char *path, const void *data, size_t bytes, DflashError *error);

#endif
