#include "store/units.h"

#include <math.h>
#include <stdio.h>

static const char *show(double value, const char *unit, int digits, char *text) {
  int whole = value != 0 && isfinite(value) ? (int)floor(log10(fabs(value))) + 1 : 1;
  int decimals = digits - (whole < 1 ? 1 : whole);
  snprintf(text, DFLASH_UNITS_MAX, "%.*f%s", decimals < 0 ? 0 : decimals, value, unit);
  return text;
}

/* The unit of the largest step that value reaches. */
static const char *show_scaled(double value, const char *const units[4], char *text) {
  if (isnan(value)) return "-";
  int step = 0;
  while (step < 3 && fabs(value) >= 999.95) {
    value /= 1000;
    step++;
  }
  return show(value, units[step], 4, text);
}

const char *dflash_show_time(double ns, char text[DFLASH_UNITS_MAX]) {
  static const char *const units[] = {" ns", " us", " ms", " s"};
  return show_scaled(ns, units, text);
}

const char *dflash_show_bytes(double bytes, char text[DFLASH_UNITS_MAX]) {
  static const char *const units[] = {" B", " KB", " MB", " GB"};
  return show_scaled(bytes, units, text);
}

const char *dflash_show_seconds(double seconds, char text[DFLASH_UNITS_MAX]) {
  return dflash_show_time(seconds * 1e9, text);
}

const char *dflash_show_share(double share, char text[DFLASH_UNITS_MAX]) {
  if (isnan(share)) return "-";
  snprintf(text, DFLASH_UNITS_MAX, "%.1f%%", share * 100);
  return text;
}

const char *dflash_show_giga(double per_s, char text[DFLASH_UNITS_MAX]) {
  if (isnan(per_s)) return "-";
  return show(per_s / 1e9, "", 4, text);
}

const char *dflash_show_number(double value, char text[DFLASH_UNITS_MAX]) {
  if (isnan(value)) return "nan";
  snprintf(text, DFLASH_UNITS_MAX, "%.9g", value);
  return text;
}

const char *dflash_show_score(double score, char text[DFLASH_UNITS_MAX]) {
  if (isnan(score)) return "-";
  snprintf(text, DFLASH_UNITS_MAX, "%.3g", score);
  return text;
}
