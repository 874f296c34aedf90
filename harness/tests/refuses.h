/* Calls that a backend must refuse. The using file has a DflashError named error, and cmocka included. */
#ifndef DFLASH_TESTS_REFUSES_H
#define DFLASH_TESTS_REFUSES_H

#include <string.h>

#include "dflash/status.h"

/* The call failed as told, with one line that says who speaks. */
static inline void expect_refusal(DflashStatus status, DflashStatus expected, const DflashError *error,
                                  const char *part) {
  assert_int_equal(status, expected);
  assert_int_equal(error->status, expected);
  assert_int_equal(strncmp(error->message, "reference: ", 11), 0);
  assert_null(strchr(error->message, '\n'));
  if (strstr(error->message, part) == NULL) fail_msg("\"%s\" does not name %s", error->message, part);
}

#define REFUSES(call, part) REFUSES_AS(DFLASH_INVALID_ARGUMENT, call, part)
#define REFUSES_AS(wanted, call, part)         \
  do {                                         \
    error = (DflashError){0};                  \
    const DflashStatus got = (call);           \
    expect_refusal(got, wanted, &error, part); \
  } while (0)

#endif
