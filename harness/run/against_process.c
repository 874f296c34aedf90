#include "run/against_process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#define HELP_LIMIT (UINT64_C(1) << 20)

extern char **environ;

bool dflash_against_is_program(const char *against) {
  const size_t length = strlen(against);
  struct stat found;
  if (strchr(against, '/') == NULL || (length > 3 && strcmp(against + length - 3, ".so") == 0)) return false;
  return stat(against, &found) == 0 && S_ISREG(found.st_mode) && access(against, X_OK) == 0;
}

static bool add_word(DflashAgainstCommand *command, const char *word) {
  if (command->count == DFLASH_AGAINST_WORDS - 1) return false;
  command->words[command->count] = strdup(word);
  return command->words[command->count] != NULL && ++command->count > 0;
}

static bool add_text(DflashAgainstCommand *command, const char *name, const char *value) {
  return value == NULL || (add_word(command, name) && add_word(command, value));
}

static bool add_number(DflashAgainstCommand *command, const char *name, double value) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", value);
  return add_text(command, name, text);
}

static bool add_count(DflashAgainstCommand *command, const char *name, int64_t value) {
  return value == 0 || add_number(command, name, (double)value);
}

static bool add_options(DflashAgainstCommand *command, const DflashOption *options, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    DflashText text = {0};
    dflash_text_append(&text, "%s=%s", options[i].key, options[i].value);
    const bool added = !text.failed && add_text(command, "--option", text.data);
    dflash_text_free(&text);
    if (!added) return false;
  }
  return true;
}

/* What both sides have in common. */
static bool add_common(DflashAgainstCommand *command, const DflashAgainstOptions *o, bool roofline, const char *json) {
  const DflashRunOptions *run = o->run;
  bool added = add_text(command, "--backend-path", run->backend_path) && add_text(command, "--case", run->cases) &&
               add_text(command, "--profile", dflash_profile_name(run->profile)) &&
               add_text(command, "--context", run->load_context ? "load" : NULL) &&
               add_count(command, "--threads", run->threads) && add_count(command, "--round", run->round) &&
               add_number(command, "--warmup", (double)run->warmup) &&
               add_count(command, "--max-samples", run->max_samples) &&
               add_number(command, "--confidence", run->confidence) && add_number(command, "--budget", o->each_s) &&
               add_text(command, "--json", json) && add_word(command, "--quiet");
  if (run->timeout_s > 0) added = added && add_number(command, "--timeout", run->timeout_s);
  if (run->cold) added = added && add_word(command, "--cold");
  return added && (roofline || add_word(command, "--no-roofline"));
}

static bool add_side(DflashAgainstCommand *command, const DflashAgainstOptions *o, char side) {
  const DflashRunOptions *run = o->run;
  const bool other = side == 'A', program = other && o->against != NULL && dflash_against_is_program(o->against);
  const bool another = other && o->against != NULL && !program && strcmp(o->against, run->backend) != 0;
  const bool own = !other || (!another && o->option_count == 0);
  return add_text(command, "--backend", another ? o->against : run->backend) &&
         add_text(command, "--device", another ? NULL : run->device) &&
         add_options(command, own ? run->options : o->options, own ? run->option_count : o->option_count);
}

bool dflash_against_command(const DflashAgainstOptions *o, char side, bool roofline, const char *json,
                            DflashAgainstCommand *command) {
  const bool program = side == 'A' && o->against != NULL && dflash_against_is_program(o->against);
  *command = (DflashAgainstCommand){0};
  bool added = add_word(command, program ? o->against : "/proc/self/exe") && add_word(command, "bench");
  for (int64_t i = 0; i < o->run->file_count && added; i++) added = add_word(command, o->run->files[i]);
  return added && add_side(command, o, side) && add_common(command, o, roofline, json);
}

void dflash_against_command_free(DflashAgainstCommand *command) {
  for (int i = 0; i < command->count; i++) free(command->words[i]);
  *command = (DflashAgainstCommand){0};
}

static DflashStatus wait_for(pid_t child, const char *program, int *status, DflashError *error) {
  int raw = 0;
  while (waitpid(child, &raw, 0) < 0)
    if (errno != EINTR) return dflash_error_set(error, DFLASH_INTERNAL, "waiting for %s: %s", program, strerror(errno));
  if (WIFEXITED(raw)) {
    *status = WEXITSTATUS(raw);
    return DFLASH_OK;
  }
  return dflash_error_set(error, DFLASH_INTERNAL, "%s ended by signal %d", program, WTERMSIG(raw));
}

DflashStatus dflash_against_run(char *const *words, const char *out, const char *said, int *status,
                                DflashError *error) {
  posix_spawn_file_actions_t actions;
  pid_t child = 0;
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed != 0) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to start a process");
  failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_TRUNC, 0);
  if (failed == 0)
    failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, said, O_WRONLY | O_TRUNC | O_APPEND, 0);
  if (failed == 0) failed = posix_spawn(&child, words[0], &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "%s cannot be started: %s", words[0], strerror(failed));
  return wait_for(child, words[0], status, error);
}

bool dflash_against_knows_no_roofline(const char *program, const char *scratch) {
  char *const words[] = {(char *)program, "bench", "--help", NULL};
  uint64_t size = 0;
  int status = 1;
  char *help = NULL;
  if (dflash_against_run(words, scratch, "/dev/null", &status, NULL) != DFLASH_OK || status != 0) return false;
  if (dflash_read_file(scratch, HELP_LIMIT, &help, &size, NULL) != DFLASH_OK) return false;
  const bool known = strstr(help, "--no-roofline") != NULL;
  free(help);
  return known;
}
