/* Texts of status codes and the one way to fill an error record. */
#ifndef DFLASH_BASE_ERROR_H
#define DFLASH_BASE_ERROR_H

#include "dflash/status.h"

/* Fills *error (may be NULL) with the formatted line and returns status, so that
 * `return dflash_error_set(error, DFLASH_IO, "...")` is the usual form. Control
 * characters in the text are replaced by '?': names come from untrusted files. */
DflashStatus dflash_error_set(DflashError *error, DflashStatus status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message that *error holds. */
DflashStatus dflash_error_prefix(DflashError *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *dflash_status_name(DflashStatus status); /* "invalid data"; never NULL */

/* Exit statuses of the command line. */
enum {
  DFLASH_EXIT_OK = 0,
  DFLASH_EXIT_WRONG = 1,       /* something is wrong, or slower */
  DFLASH_EXIT_BAD_INPUT = 2,   /* bad input or usage */
  DFLASH_EXIT_UNAVAILABLE = 3, /* asked for by name and not available here */
  DFLASH_EXIT_NOTHING = 4,     /* nothing ran */
  DFLASH_EXIT_CANNOT_TELL = 5,
  DFLASH_EXIT_SKIPPED = 77 /* --allow-missing, and nothing else ran */
};

int dflash_status_exit(DflashStatus status); /* the exit status for a command that ended with it */

#endif
