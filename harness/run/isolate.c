#include "run/isolate.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "run/isolate_child.h"
#include "time/clock.h"

enum { TICK_MS = 100, REAP_MS = 5000 };

/* What the parent hears from one child. */
typedef struct Listener {
  pid_t pid;
  int descriptor; /* -1: the child closed its end */
  double timeout_s;
  DflashRecordFn record;
  void *record_context;
  DflashText text;
  bool returned; /* fn came back */
  bool stop;     /* no more is wanted, or memory is out */
} Listener;

/* Hands every whole line to `record` and keeps the rest. */
static void take_lines(Listener *l) {
  DflashText *text = &l->text;
  size_t begin = 0;
  char *end;
  while (!l->stop && (end = memchr(text->data + begin, '\n', text->size - begin)) != NULL) {
    *end = '\0';
    cJSON *object = cJSON_Parse(text->data + begin);
    if (object != NULL)
      l->stop = l->record(l->record_context, object) != 0;
    else if (strcmp(text->data + begin, DFLASH_CHILD_RETURNED) == 0)
      l->returned = true;
    cJSON_Delete(object);
    begin = (size_t)(end - text->data) + 1;
  }
  memmove(text->data, text->data + begin, text->size - begin);
  text->size -= begin;
}

static void take_piece(Listener *l) {
  char piece[65536];
  ssize_t n = read(l->descriptor, piece, sizeof piece);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) {
    close(l->descriptor);
    l->descriptor = -1;
    return;
  }
  dflash_text_bytes(&l->text, piece, (size_t)n);
  if (l->text.failed)
    l->stop = true;
  else
    take_lines(l);
}

/* The child is over; it stays a zombie, which keeps its number. */
static bool has_ended(pid_t pid) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Until the child is over and nothing of it is left to read: a process that it started may keep the pipe open. */
static int listen_to(Listener *l) {
  uint64_t limit = (uint64_t)(l->timeout_s * 1e9), last = dflash_clock_ns();
  bool ended = false;
  while (!l->stop) {
    struct pollfd wait = {.fd = l->descriptor, .events = POLLIN};
    int ready = poll(&wait, 1, ended ? 0 : l->descriptor < 0 ? 1 : TICK_MS);
    if (ready > 0) {
      take_piece(l);
      last = dflash_clock_ns();
    } else if (ended) {
      return DFLASH_CHILD_EXITED;
    } else {
      ended = has_ended(l->pid);
      if (!ended && limit > 0 && dflash_clock_ns() - last > limit) return DFLASH_CHILD_HUNG;
    }
  }
  return DFLASH_CHILD_STOPPED;
}

/* Ends what is left of the child's group. A process that hangs in a driver cannot be killed: it is left alone. */
static bool end_child(pid_t pid, int *state) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  for (int waited = 0; waited < REAP_MS; waited++) {
    pid_t found = waitpid(pid, state, WNOHANG);
    if (found == pid || (found < 0 && errno != EINTR)) return found == pid;
    poll(NULL, 0, 1);
  }
  return false;
}

static void describe(const Listener *l, int how, int state, bool reaped, DflashChildResult *result) {
  result->how = how;
  if (how == DFLASH_CHILD_STOPPED) {
    snprintf(result->text, sizeof result->text, "was stopped");
  } else if (how == DFLASH_CHILD_HUNG) {
    snprintf(result->text, sizeof result->text, "made no progress for %g s%s", l->timeout_s,
             reaped ? "" : " and cannot be ended");
  } else if (WIFSIGNALED(state)) {
    result->how = DFLASH_CHILD_CRASHED;
    result->value = WTERMSIG(state);
    snprintf(result->text, sizeof result->text, "crashed with signal %d (%s)", result->value, strsignal(result->value));
  } else {
    result->how = l->returned ? DFLASH_CHILD_EXITED : DFLASH_CHILD_CRASHED;
    result->value = WEXITSTATUS(state);
    snprintf(result->text, sizeof result->text, "ended the process with exit status %d", result->value);
  }
}

DflashStatus dflash_isolate(int (*fn)(void *context, DflashChild *child), void *context, double timeout_s,
                            DflashRecordFn record, void *record_context, DflashChildResult *result,
                            DflashError *error) {
  memset(result, 0, sizeof *result);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return dflash_error_set(error, DFLASH_IO, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    close(ends[0]);
    dflash_child_run(fn, context, ends[1], parent);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cannot start a process: %s", strerror(errno));
  }
  Listener l = {
      .pid = pid, .descriptor = ends[0], .timeout_s = timeout_s, .record = record, .record_context = record_context};
  int how = listen_to(&l), state = 0;
  if (l.descriptor >= 0) close(l.descriptor);
  bool reaped = end_child(pid, &state);
  describe(&l, how, state, reaped, result);
  DflashStatus status = l.text.failed ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for records") : 0;
  dflash_text_free(&l.text);
  return status;
}
