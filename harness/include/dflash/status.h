/* Status codes and the error record that every call of the project uses.
 *
 * A function that can fail returns a DflashStatus and takes a DflashError *
 * as its last argument. DFLASH_OK is 0. On failure the record (when not NULL)
 * holds the same code and one line of text that names the cause: who, what
 * failed, the value found, what is valid. The record is left alone on success.
 */
#ifndef DFLASH_STATUS_H
#define DFLASH_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t DflashStatus;

enum {
  DFLASH_OK = 0,
  DFLASH_INVALID_ARGUMENT = 1, /* the caller's mistake: usage, range, order of calls */
  DFLASH_INVALID_DATA = 2,     /* a file or a value from one is malformed */
  DFLASH_UNSUPPORTED = 3,      /* known, valid, and not possible on this backend or device */
  DFLASH_UNAVAILABLE = 4,      /* asked for by name and not present here */
  DFLASH_OUT_OF_MEMORY = 5,    /* host or device */
  DFLASH_DEVICE_LOST = 6,
  DFLASH_TIMED_OUT = 7,
  DFLASH_NONFINITE = 8,    /* NaN or infinity where the contract allows none */
  DFLASH_CONTEXT_LOST = 9, /* a rewind went deeper than the rows that a layer still keeps */
  DFLASH_IO = 10,          /* reading or writing failed: the text carries the system's reason */
  DFLASH_INTERNAL = 11     /* a defect in the component itself */
};

typedef struct DflashError {
  DflashStatus status;
  char message[1020]; /* one line, NUL-terminated, no newline */
} DflashError;

#ifdef __cplusplus
}
#endif
#endif
