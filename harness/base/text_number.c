#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* strtol and strtod skip blanks; a number here has none. */
static bool starts_number(const char *text) { return text && *text && !strchr(" \t\n\v\f\r", *text); }

/* Reads a finite number; *rest is what follows it. */
static bool parse_prefix(const char *text, double *value, const char **rest) {
  if (!starts_number(text)) return false;
  char *end;
  double parsed = strtod(text, &end);
  if (end == text || !isfinite(parsed)) return false;
  *value = parsed;
  *rest = end;
  return true;
}

bool dflash_parse_i64(const char *text, int64_t *value) {
  if (!starts_number(text)) return false;
  char *end;
  errno = 0;
  long long parsed = strtoll(text, &end, 10);
  if (end == text || *end || errno == ERANGE) return false;
  *value = parsed;
  return true;
}

bool dflash_parse_f64(const char *text, double *value) {
  double parsed;
  const char *rest;
  if (!parse_prefix(text, &parsed, &rest) || *rest) return false;
  *value = parsed;
  return true;
}

bool dflash_parse_share(const char *text, double *value) {
  double parsed;
  const char *rest;
  if (!parse_prefix(text, &parsed, &rest)) return false;
  if (strcmp(rest, "%") == 0)
    parsed /= 100;
  else if (*rest)
    return false;
  if (!(parsed > 0 && parsed < 1)) return false;
  *value = parsed;
  return true;
}

bool dflash_parse_seconds(const char *text, double *value) {
  static const struct {
    const char *unit;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"h", 3600}};
  double parsed;
  const char *rest;
  if (!parse_prefix(text, &parsed, &rest)) return false;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (strcmp(rest, units[i].unit) != 0) continue;
    parsed *= units[i].seconds;
    if (!(parsed > 0 && isfinite(parsed))) return false;
    *value = parsed;
    return true;
  }
  return false;
}
