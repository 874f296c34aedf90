#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Both go through a text of their own: arguments may point into error->message. A line that is too long is cut. */
static void keep_line(DflashError *error, const char *line) {
  snprintf(error->message, sizeof error->message, "%s", line);
  dflash_text_clean(error->message);
}

DflashStatus dflash_error_set(DflashError *error, DflashStatus status, const char *format, ...) {
  if (!error) return status;
  char line[sizeof error->message] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  keep_line(error, line);
  error->status = status;
  return status;
}

DflashStatus dflash_error_prefix(DflashError *error, const char *format, ...) {
  if (!error) return DFLASH_OK;
  char line[2 * sizeof error->message + 2] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof error->message, format, arguments);
  va_end(arguments);
  size_t used = strlen(line);
  snprintf(line + used, sizeof line - used, ": %.*s", (int)sizeof error->message - 1, error->message);
  keep_line(error, line);
  return error->status;
}

const char *dflash_status_name(DflashStatus status) {
  static const char *const names[] = {
      [DFLASH_OK] = "ok",
      [DFLASH_INVALID_ARGUMENT] = "invalid argument",
      [DFLASH_INVALID_DATA] = "invalid data",
      [DFLASH_UNSUPPORTED] = "unsupported",
      [DFLASH_UNAVAILABLE] = "unavailable",
      [DFLASH_OUT_OF_MEMORY] = "out of memory",
      [DFLASH_DEVICE_LOST] = "device lost",
      [DFLASH_TIMED_OUT] = "timed out",
      [DFLASH_NONFINITE] = "nonfinite",
      [DFLASH_CONTEXT_LOST] = "context lost",
      [DFLASH_IO] = "input or output failed",
      [DFLASH_INTERNAL] = "internal error",
  };
  if (status < 0 || (size_t)status >= sizeof names / sizeof names[0]) return "unknown status";
  return names[status];
}

int dflash_status_exit(DflashStatus status) {
  switch (status) {
  case DFLASH_OK:
    return DFLASH_EXIT_OK;
  case DFLASH_INVALID_ARGUMENT:
  case DFLASH_INVALID_DATA:
  case DFLASH_IO:
    return DFLASH_EXIT_BAD_INPUT;
  case DFLASH_UNSUPPORTED:
  case DFLASH_UNAVAILABLE:
    return DFLASH_EXIT_UNAVAILABLE;
  case DFLASH_OUT_OF_MEMORY:
    return DFLASH_EXIT_CANNOT_TELL;
  default:
    return DFLASH_EXIT_WRONG;
  }
}
