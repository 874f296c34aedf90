#include "run/git_revisions.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

extern char **environ;

static bool start(const char *branch, int out, int other_end, pid_t *child) {
  char *const words[] = {"git", "rev-list", (char *)branch, "--", NULL};
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return false;
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclose(&actions, other_end);
  const bool started = posix_spawnp(child, words[0], &actions, NULL, words, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  return started;
}

static void read_all(int descriptor, DflashText *text) {
  char piece[4096];
  ssize_t got;
  while ((got = read(descriptor, piece, sizeof piece)) > 0) dflash_text_bytes(text, piece, (size_t)got);
}

DflashStatus dflash_revisions_of(const char *branch, char **revisions, DflashError *error) {
  int ends[2], how = -1;
  pid_t child = -1;
  DflashText text = {0};
  *revisions = NULL;
  if (branch[0] == '\0' || branch[0] == '-')
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "'%s' is no name of a branch", branch);
  if (pipe(ends) != 0) return dflash_error_set(error, DFLASH_IO, "no pipe to git");
  const bool started = start(branch, ends[1], ends[0], &child);
  close(ends[1]);
  if (started) read_all(ends[0], &text);
  close(ends[0]);
  if (started) waitpid(child, &how, 0);
  if (started && how == 0 && text.size > 0 && !text.failed) {
    *revisions = text.data;
    return DFLASH_OK;
  }
  dflash_text_free(&text);
  return dflash_error_set(error, DFLASH_UNAVAILABLE, "git names no revisions of branch '%s' here", branch);
}

bool dflash_revisions_have(const char *revisions, const char *revision) {
  const char *at = strlen(revision) == 40 ? strstr(revisions, revision) : NULL;
  return at != NULL && at[40] == '\n';
}
