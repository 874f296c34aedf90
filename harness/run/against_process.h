/* One process of one side. Internal to against. */
#ifndef DFLASH_RUN_AGAINST_PROCESS_H
#define DFLASH_RUN_AGAINST_PROCESS_H

#include "run/against.h"
#include "run/runs.h"

enum { DFLASH_AGAINST_WORDS = 128 };

/* A command line; texts that were made for it are owned. */
typedef struct DflashAgainstCommand {
  char *words[DFLASH_AGAINST_WORDS]; /* NULL after the last */
  int count;
} DflashAgainstCommand;

/* `bench` of side 'A' or 'B' that writes its records to json, and measures the roofline or not. false: memory is out,
 * or there are too many words. */
bool dflash_against_command(const DflashAgainstOptions *options, char side, bool roofline, const char *json,
                            DflashAgainstCommand *command);
void dflash_against_command_free(DflashAgainstCommand *command);
/* Side A is another program. */
bool dflash_against_is_program(const char *against);

/* Runs a program (words: a command's) to its end, its stdout and stderr in these files. *status: its exit status; a
 * signal is an error. */
DflashStatus dflash_against_run(char *const *words, const char *out, const char *said, int *status, DflashError *error);
/* Whether another program's `bench` takes --no-roofline: it may be older than that. `scratch` gets its help. */
bool dflash_against_knows_no_roofline(const char *program, const char *scratch);

#endif
