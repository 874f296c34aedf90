#include "base/unfinished.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 32 };

typedef struct Entry {
  pid_t owner; /* a forked child inherits the list and must leave the files alone */
  char path[];
} Entry;

typedef _Atomic(Entry *) Place;

/* A signal handler takes no context, so its list is static. A place is claimed and emptied by one atomic exchange:
 * whoever empties it owns the entry, so nothing is freed while a handler reads it. */
static Place *places(void) {
  static Place list[PLACES];
  return list;
}

static void remove_unfinished(int signal_number) {
  int kept = errno;
  for (int i = 0; i < PLACES; i++) {
    const Entry *entry = atomic_exchange(&places()[i], NULL);
    if (entry && entry->owner == getpid()) unlink(entry->path);
  }
  errno = kept;
  signal(signal_number, SIG_DFL);
  raise(signal_number); /* delivered when this handler returns */
}

static void install(int signal_number, void (*handler)(int)) {
  struct sigaction now, action = {.sa_handler = handler};
  if (sigaction(signal_number, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL) return;
  sigemptyset(&action.sa_mask);
  sigaction(signal_number, &action, NULL);
}

static void install_all(void) {
  static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
  for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) install(fatal[i], remove_unfinished);
}

void dflash_size_limit_ignore(void) { install(SIGXFSZ, SIG_IGN); }

int dflash_unfinished_add(const char *path) {
  install_all();
  size_t bytes = strlen(path) + 1;
  Entry *entry = malloc(sizeof *entry + bytes);
  if (!entry) return -1;
  entry->owner = getpid();
  memcpy(entry->path, path, bytes);
  for (int i = 0; i < PLACES; i++) {
    Entry *empty = NULL;
    if (atomic_compare_exchange_strong(&places()[i], &empty, entry)) return i;
  }
  free(entry);
  return -1;
}

void dflash_unfinished_release(int place) {
  if (place >= 0) free(atomic_exchange(&places()[place], NULL));
}
