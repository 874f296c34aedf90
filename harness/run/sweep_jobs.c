/* Draws in processes side by side: worker w of n does every n-th draw and sends each record as a line. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "run/sweep_parts.h"

typedef struct Worker {
  pid_t pid;
  int descriptor; /* -1: over */
  DflashText text;
  int64_t next, left; /* its draw in work, and how many it still owes */
} Worker;

typedef struct Crew {
  const DflashSweepOptions *options;
  DflashSweepTake take;
  void *context;
  Worker *workers;
  struct pollfd *wait;
  int64_t count;
  bool stop, no_memory; /* no_memory: that is why it stops */
} Crew;

/* ---- a worker ---- */

static bool send_record(int descriptor, cJSON *record) {
  char *line = record != NULL ? cJSON_PrintUnformatted(record) : NULL;
  cJSON_Delete(record);
  if (line == NULL) return false;
  size_t length = strlen(line);
  line[length] = '\n'; /* the terminator's place: the line is sent by length */
  DflashStatus status = dflash_write_all(descriptor, "pipe", line, length + 1, NULL);
  free(line);
  return status == DFLASH_OK;
}

static _Noreturn void work(const DflashSweepOptions *options, int64_t worker, int descriptor, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(DFLASH_EXIT_CANNOT_TELL);
  for (int64_t i = worker; i < options->count; i += options->jobs)
    if (!send_record(descriptor, dflash_sweep_work(options, options->first + i))) _exit(DFLASH_EXIT_CANNOT_TELL);
  _exit(DFLASH_EXIT_OK);
}

static DflashStatus start(Crew *crew, int64_t index, DflashError *error) {
  int ends[2];
  Worker *worker = &crew->workers[index];
  if (pipe2(ends, O_CLOEXEC) != 0) return dflash_error_set(error, DFLASH_IO, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  pid_t parent = getpid();
  worker->pid = fork();
  if (worker->pid == 0) {
    close(ends[0]);
    work(crew->options, index, ends[1], parent);
  }
  close(ends[1]);
  worker->descriptor = ends[0];
  worker->next = crew->options->first + index;
  worker->left = (crew->options->count - index + crew->options->jobs - 1) / crew->options->jobs;
  if (worker->pid > 0) return DFLASH_OK;
  close(ends[0]);
  worker->descriptor = -1;
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cannot start a process: %s", strerror(errno));
}

/* ---- the parent ---- */

static void take_lines(Crew *crew, Worker *worker) {
  DflashText *text = &worker->text;
  size_t begin = 0;
  char *end;
  while (!crew->stop && (end = memchr(text->data + begin, '\n', text->size - begin)) != NULL) {
    *end = '\0';
    cJSON *record = cJSON_Parse(text->data + begin);
    worker->next += crew->options->jobs;
    worker->left--;
    crew->no_memory = record == NULL; /* a worker sends whole records */
    crew->stop = crew->no_memory || crew->take(crew->context, record) != 0;
    cJSON_Delete(record);
    begin = (size_t)(end - text->data) + 1;
  }
  memmove(text->data, text->data + begin, text->size - begin);
  text->size -= begin;
}

static void take_piece(Crew *crew, Worker *worker) {
  char piece[65536];
  ssize_t n = read(worker->descriptor, piece, sizeof piece);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) {
    close(worker->descriptor);
    worker->descriptor = -1;
    return;
  }
  dflash_text_bytes(&worker->text, piece, (size_t)n);
  crew->no_memory = worker->text.failed;
  if (crew->no_memory)
    crew->stop = true;
  else
    take_lines(crew, worker);
}

static int64_t listen_once(Crew *crew) {
  int64_t open = 0;
  for (int64_t i = 0; i < crew->count; i++) {
    crew->wait[i] = (struct pollfd){.fd = crew->workers[i].descriptor, .events = POLLIN};
    open += crew->workers[i].descriptor >= 0;
  }
  if (open == 0 || poll(crew->wait, (nfds_t)crew->count, -1) < 0) return open;
  for (int64_t i = 0; i < crew->count && !crew->stop; i++)
    if (crew->wait[i].fd >= 0 && crew->wait[i].revents) take_piece(crew, &crew->workers[i]);
  return open;
}

/* Ends what still runs. A worker that owes draws went wrong by itself. */
static DflashStatus end_all(Crew *crew, DflashError *error) {
  DflashStatus status =
      crew->no_memory ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a draw's record") : DFLASH_OK;
  for (int64_t i = 0; i < crew->count; i++) {
    Worker *worker = &crew->workers[i];
    if (worker->pid > 0 && crew->stop) kill(worker->pid, SIGKILL);
    if (worker->descriptor >= 0) close(worker->descriptor);
    if (worker->pid > 0) waitpid(worker->pid, NULL, 0);
    if (worker->pid > 0 && worker->left > 0 && !crew->stop && status == DFLASH_OK)
      status = dflash_error_set(error, DFLASH_INTERNAL, "a process of this program ended at draw %lld",
                                (long long)worker->next);
    dflash_text_free(&worker->text);
  }
  return status;
}

static DflashStatus run_crew(Crew *crew, DflashError *error) {
  const DflashSweepOptions *o = crew->options;
  DflashStatus status = DFLASH_OK;
  for (; status == DFLASH_OK && crew->count < o->jobs && crew->count < o->count; crew->count++)
    status = start(crew, crew->count, error);
  crew->stop = status != DFLASH_OK;
  while (!crew->stop && listen_once(crew) > 0) continue;
  DflashStatus ended = end_all(crew, status == DFLASH_OK ? error : NULL);
  return status == DFLASH_OK ? ended : status;
}

static DflashStatus run_here(const DflashSweepOptions *options, DflashSweepTake take, void *context,
                             DflashError *error) {
  for (int64_t i = 0; i < options->count; i++) {
    cJSON *record = dflash_sweep_work(options, options->first + i);
    if (record == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a draw");
    int stop = take(context, record);
    cJSON_Delete(record);
    if (stop) break;
  }
  return DFLASH_OK;
}

DflashStatus dflash_sweep_jobs(const DflashSweepOptions *options, DflashSweepTake take, void *context,
                               DflashError *error) {
  if (options->jobs < 2) return run_here(options, take, context, error);
  Crew crew = {.options = options, .take = take, .context = context};
  crew.workers = calloc((size_t)options->jobs, sizeof *crew.workers);
  crew.wait = calloc((size_t)options->jobs, sizeof *crew.wait);
  DflashStatus status = crew.workers != NULL && crew.wait != NULL
                            ? run_crew(&crew, error)
                            : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for processes");
  free(crew.workers);
  free(crew.wait);
  return status;
}
