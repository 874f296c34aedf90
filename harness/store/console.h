/* Tables for a person, record by record. Internal to store. */
#ifndef DFLASH_STORE_CONSOLE_H
#define DFLASH_STORE_CONSOLE_H

#include <stdbool.h>
#include <stdio.h>

struct cJSON;

typedef struct DflashConsole {
  FILE *file;
  bool verbose, coloured;
  struct cJSON *verdicts; /* array: of the case in work */
  char *heading, *model;  /* as last printed: repeated only when they change */
} DflashConsole;

void dflash_console_case(DflashConsole *console, const struct cJSON *record);
void dflash_console_bench(const DflashConsole *console, const struct cJSON *record);

/* Prints the line when it differs from *last, and keeps it there. line is freed or kept; NULL is allowed. */
void dflash_console_once(const DflashConsole *console, char **last, char *line);
int dflash_console_colour(const char *outcome); /* DFLASH_COLOUR_* */

#endif
