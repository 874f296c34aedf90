/* One function a command: argv[0] is the command's name; the exit status comes back. */
#ifndef DFLASH_CLI_COMMANDS_H
#define DFLASH_CLI_COMMANDS_H

#include "dflash/status.h"

int dflash_command_golden(int argc, char **argv);
int dflash_command_history(int argc, char **argv);
int dflash_command_verify(int argc, char **argv);
int dflash_command_compare(int argc, char **argv);
int dflash_command_compare_runs(int argc, char **argv);
int dflash_command_gate(int argc, char **argv);
int dflash_command_bench(int argc, char **argv);
int dflash_command_sweep(int argc, char **argv);
int dflash_command_selftest(int argc, char **argv);
int dflash_command_list(int argc, char **argv);
int dflash_command_report(int argc, char **argv);

/* Logs the error and gives its exit status. */
int dflash_command_fail(const DflashError *error);
/* 1 when both names lead to one file that exists. */
int dflash_same_file(const char *a, const char *b);
/* The whole command line as typed, for records. */
const char *dflash_command_line(void);

#endif
