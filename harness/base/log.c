#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

/* The process has one stderr, hence one level and one progress line on it. */
static atomic_int *level_now(void) {
  static atomic_int level = DFLASH_LOG_WARNING;
  return &level;
}

static atomic_bool *progress_shown(void) {
  static atomic_bool shown;
  return &shown;
}

void dflash_log_level(int level) { atomic_store(level_now(), level); }

void dflash_log(int level, const char *format, ...) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  if (level < DFLASH_LOG_ERROR || level > DFLASH_LOG_DEBUG || level > atomic_load(level_now())) return;
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  dflash_text_clean(line);
  dflash_progress_done();
  fprintf(stderr, "dflash-harness: %s: %s\n", names[level], line);
}

static size_t terminal_columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 80;
  return size.ws_col;
}

void dflash_progress(const char *format, ...) {
  if (!isatty(STDERR_FILENO)) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  size_t columns = terminal_columns() - 1; /* a full line would wrap and could not be rewritten */
  if (columns < sizeof line) line[columns] = '\0';
  dflash_text_clean(line);
  fprintf(stderr, "\r\033[K%s", line);
  atomic_store(progress_shown(), true);
}

void dflash_progress_done(void) {
  if (atomic_exchange(progress_shown(), false)) fputs("\r\033[K", stderr);
}
