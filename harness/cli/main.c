/* dflash-harness: golden files in, verdicts and times out. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"

typedef struct Command {
  const char *name, *about;
  int (*run)(int argc, char **argv);
} Command;

static const Command commands[] = {
    {"verify", "is a backend right? every stage against a golden file", dflash_command_verify},
    {"bench", "how fast is it? every stage and the whole block, once it is right", dflash_command_bench},
    {"sweep", "drawn goldens by the hundred, each verified in memory", dflash_command_sweep},
    {"golden", "make, inspect and check golden files", dflash_command_golden},
    {"compare", "are the values right that another engine wrote?", dflash_command_compare},
    {"list", "backends, devices, stages, presets, cases", dflash_command_list},
    {"history", "list, show, export, import and prune what --history kept", dflash_command_history},
    {"selftest", "how good is this gate? every deliberate defect planted and looked for", dflash_command_selftest},
    {"compare-runs", "is one set of timed runs slower than another?", dflash_command_compare_runs},
    {"gate", "may this night pass? parity, plausibility and times in one verdict", dflash_command_gate},
    {"report", "what runs found, as a page and figures", dflash_command_report},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static DflashText command_line;

const char *dflash_command_line(void) { return command_line.data; }

int dflash_command_fail(const DflashError *error) {
  dflash_log(DFLASH_LOG_ERROR, "%s", error->message);
  return dflash_status_exit(error->status);
}

int dflash_same_file(const char *a, const char *b) {
  struct stat first, second;
  return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino && S_ISREG(first.st_mode);
}

static void print_usage(FILE *out) {
  fprintf(out, "dflash-harness " DFLASH_VERSION ": parity and timing for the DFlash 2 block drafter\n\n"
               "usage: dflash-harness COMMAND [OPTIONS] [FILES]\n\ncommands:\n");
  for (int i = 0; i < COMMANDS; i++) fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].about);
  fprintf(out, "\n'dflash-harness COMMAND --help' tells about one.\n"
               "exit status: 0 all that was selected ran and passed, 1 something is wrong or slower, 2 bad input or\n"
               "usage, 3 something asked for by name is not available here, 4 nothing ran, 5 cannot tell, 77 all that\n"
               "was asked for is absent and --allow-missing was given\n");
}

static void refuse_command(const char *name) {
  DflashText known = {0};
  for (int i = 0; i < COMMANDS; i++) dflash_text_append(&known, "%s, ", commands[i].name);
  const char *list = known.data != NULL ? known.data : "";
  if (name != NULL)
    dflash_log(DFLASH_LOG_ERROR, "command '%s' is unknown; there are %sand --help", name, list);
  else
    dflash_log(DFLASH_LOG_ERROR, "no command is given; there are %sand --help", list);
  dflash_text_free(&known);
}

static int run(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
    print_usage(stdout);
    return DFLASH_EXIT_OK;
  }
  if (strcmp(name, "--version") == 0) {
    printf("dflash-harness " DFLASH_VERSION "\n");
    return DFLASH_EXIT_OK;
  }
  for (int i = 0; i < COMMANDS; i++)
    if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  refuse_command(argc > 1 ? name : NULL);
  return DFLASH_EXIT_BAD_INPUT;
}

/* A closed standard stream would give its number to a file that is written. */
static void open_standard_streams(void) {
  int descriptor = open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= 2) descriptor = open("/dev/null", O_RDWR);
  if (descriptor > 2) close(descriptor);
}

int main(int argc, char **argv) {
  open_standard_streams();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a write past the limit is an error like a full disk */
  for (int i = 0; i < argc; i++) dflash_text_append(&command_line, "%s%s", i > 0 ? " " : "", argv[i]);
  int result = run(argc, argv);
  dflash_text_free(&command_line);
  if (result != DFLASH_EXIT_OK || (fflush(stdout) == 0 && !ferror(stdout))) return result;
  dflash_log(DFLASH_LOG_ERROR, "cannot write to stdout: %s", strerror(errno));
  return DFLASH_EXIT_BAD_INPUT;
}
