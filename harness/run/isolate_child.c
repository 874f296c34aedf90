#include "run/isolate_child.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

struct DflashChild {
  int descriptor;
  int kept_stderr; /* -1: stderr is in its place */
};

DflashStatus dflash_child_send(DflashChild *child, const cJSON *record) {
  char *text = cJSON_PrintUnformatted(record);
  if (text == NULL) return DFLASH_OUT_OF_MEMORY;
  size_t length = strlen(text);
  text[length] = '\n'; /* the terminator's place: the line is sent by length */
  DflashStatus status = dflash_write_all(child->descriptor, "pipe", text, length + 1, NULL);
  free(text);
  return status;
}

void dflash_child_hush(DflashChild *child, int hushed) {
  if (hushed == (child->kept_stderr >= 0)) return;
  if (!hushed) {
    dup2(child->kept_stderr, STDERR_FILENO);
    close(child->kept_stderr);
    child->kept_stderr = -1;
    return;
  }
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  child->kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (nowhere >= 0 && child->kept_stderr >= 0) dup2(nowhere, STDERR_FILENO);
  if (nowhere >= 0) close(nowhere);
}

void dflash_child_run(int (*fn)(void *context, DflashChild *child), void *context, int descriptor, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(DFLASH_EXIT_CANNOT_TELL);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  DflashChild child = {descriptor, -1};
  int value = fn(context, &child);
  fflush(NULL);
  dflash_write_all(descriptor, "pipe", DFLASH_CHILD_RETURNED "\n", sizeof DFLASH_CHILD_RETURNED, NULL);
  _exit(value);
}
