/* Quantities for a person; NaN shows as "-". Internal to store. */
#ifndef DFLASH_STORE_UNITS_H
#define DFLASH_STORE_UNITS_H

enum { DFLASH_UNITS_MAX = 32 };

const char *dflash_show_time(double ns, char text[DFLASH_UNITS_MAX]);      /* "812 ns", "1.234 us", "12.35 ms" */
const char *dflash_show_share(double share, char text[DFLASH_UNITS_MAX]);  /* "12.3%" */
const char *dflash_show_giga(double per_s, char text[DFLASH_UNITS_MAX]);   /* "12.34": GB/s, GFLOP/s */
const char *dflash_show_bytes(double bytes, char text[DFLASH_UNITS_MAX]);  /* "1.32 GB" */
const char *dflash_show_number(double value, char text[DFLASH_UNITS_MAX]); /* 9 digits: enough for any f32 */
const char *dflash_show_score(double score, char text[DFLASH_UNITS_MAX]);  /* 3 digits */
const char *dflash_show_seconds(double seconds, char text[DFLASH_UNITS_MAX]);

#endif
