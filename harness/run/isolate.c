#include "run/isolate.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "time/clock.h"

struct DflashChild {
  int descriptor;
};

static DflashStatus write_all(int descriptor, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t n = write(descriptor, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DFLASH_IO;
    data += n;
    bytes -= (size_t)n;
  }
  return DFLASH_OK;
}

DflashStatus dflash_child_send(DflashChild *child, const cJSON *record) {
  char *text = cJSON_PrintUnformatted(record);
  if (text == NULL) return DFLASH_OUT_OF_MEMORY;
  size_t length = strlen(text);
  text[length] = '\n'; /* the terminator's place: the line is sent by length */
  DflashStatus status = write_all(child->descriptor, text, length + 1);
  free(text);
  return status;
}

static void run_child(int (*fn)(void *, DflashChild *), void *context, int descriptor, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(DFLASH_EXIT_CANNOT_TELL);
  DflashChild child = {descriptor};
  int value = fn(context, &child);
  fflush(NULL);
  _exit(value);
}

/* Hands every whole line of `text` to `record` and keeps the rest. */
static void take_lines(DflashText *text, void (*record)(void *, cJSON *), void *record_context) {
  size_t begin = 0;
  for (;;) {
    char *end = memchr(text->data + begin, '\n', text->size - begin);
    if (end == NULL) break;
    *end = '\0';
    cJSON *object = cJSON_Parse(text->data + begin);
    if (object != NULL) record(record_context, object);
    cJSON_Delete(object);
    begin = (size_t)(end - text->data) + 1;
  }
  memmove(text->data, text->data + begin, text->size - begin);
  text->size -= begin;
}

/* Reads until the child's end of the pipe closes. 1 when it was silent for too long. */
static int listen(int descriptor, double timeout_s, void (*record)(void *, cJSON *), void *record_context) {
  DflashText text = {0};
  uint64_t limit = (uint64_t)(timeout_s * 1e9), last = dflash_clock_ns();
  int hung = 0;
  for (;;) {
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    int ready = poll(&wait, 1, 100);
    if (ready > 0) {
      char piece[65536];
      ssize_t n = read(descriptor, piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      dflash_text_bytes(&text, piece, (size_t)n);
      if (text.failed) break;
      take_lines(&text, record, record_context);
      last = dflash_clock_ns();
    } else if (timeout_s > 0 && dflash_clock_ns() - last > limit) {
      hung = 1;
      break;
    }
  }
  dflash_text_free(&text);
  return hung;
}

static void describe(int state, int hung, double timeout_s, DflashChildResult *result) {
  if (hung) {
    result->how = DFLASH_CHILD_HUNG;
    snprintf(result->text, sizeof result->text, "no progress for %g s, ended", timeout_s);
  } else if (WIFSIGNALED(state)) {
    result->how = DFLASH_CHILD_CRASHED;
    result->value = WTERMSIG(state);
    snprintf(result->text, sizeof result->text, "crashed: signal %d (%s)", result->value, strsignal(result->value));
  } else {
    result->how = DFLASH_CHILD_EXITED;
    result->value = WEXITSTATUS(state);
    snprintf(result->text, sizeof result->text, "exit status %d", result->value);
  }
}

DflashStatus dflash_isolate(int (*fn)(void *context, DflashChild *child), void *context, double timeout_s,
                            void (*record)(void *record_context, cJSON *record), void *record_context,
                            DflashChildResult *result, DflashError *error) {
  memset(result, 0, sizeof *result);
  int ends[2];
  if (pipe(ends) != 0) return dflash_error_set(error, DFLASH_IO, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  pid_t parent = getpid(), pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cannot start a process: %s", strerror(errno));
  }
  if (pid == 0) {
    close(ends[0]);
    run_child(fn, context, ends[1], parent);
  }
  close(ends[1]);
  int hung = listen(ends[0], timeout_s, record, record_context);
  close(ends[0]);
  if (hung) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
  }
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  describe(state, hung, timeout_s, result);
  return DFLASH_OK;
}
