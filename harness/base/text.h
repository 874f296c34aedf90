/* Text: growing strings, patterns, numbers as users write them. */
#ifndef DFLASH_BASE_TEXT_H
#define DFLASH_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct DflashText {
  char *data; /* NUL-terminated, never NULL after the first append that succeeded */
  size_t size, capacity;
  bool failed; /* memory was out: later appends do nothing */
} DflashText;

void dflash_text_append(DflashText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dflash_text_bytes(DflashText *text, const char *data, size_t bytes);
void dflash_text_free(DflashText *text);

/* Replaces control characters (C0, DEL, and C1 in UTF-8) by '?', in place: names come from untrusted files. */
void dflash_text_clean(char *text);

/* Bytes (1 to 4) of the UTF-8 sequence at text; 0 at its end and where the bytes are none. */
size_t dflash_utf8_length(const char *text);
/* Appends a string of any bytes; each that is no UTF-8 becomes U+FFFD. */
void dflash_text_utf8(DflashText *text, const char *bytes);

/* Shell pattern (fnmatch without path rules); several may be joined by ','. NULL or "" matches all. */
bool dflash_glob_match(const char *patterns, const char *name);

/* The whole text must be the number, without blanks, in range and finite; false otherwise. */
bool dflash_parse_i64(const char *text, int64_t *value);
bool dflash_parse_f64(const char *text, double *value);
bool dflash_parse_share(const char *text, double *value);   /* "1%" or "0.01", in (0, 1) */
bool dflash_parse_seconds(const char *text, double *value); /* "60s", "500ms", "2m", "1.5"; > 0 */

#endif
