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
  struct cJSON *told;     /* array: sentences below the rows of the file in work, each printed once */
} DflashConsole;

void dflash_console_case(DflashConsole *console, const struct cJSON *record);
void dflash_console_bench(const DflashConsole *console, const struct cJSON *record);

/* Whether text differs from *last, which it then becomes. text is freed or kept; NULL is allowed and differs never. */
bool dflash_console_changed(char **last, char *text);
void dflash_console_head(const DflashConsole *console, const char *line);
void dflash_console_forget(struct cJSON *array); /* empties it */
int dflash_console_colour(const char *outcome);  /* DFLASH_COLOUR_* */

#endif
