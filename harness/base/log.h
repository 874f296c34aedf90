/* Messages to a person, on stderr: "dflash-harness: warning: ...". Data never goes here. */
#ifndef DFLASH_BASE_LOG_H
#define DFLASH_BASE_LOG_H

#include <stdbool.h>

enum { DFLASH_LOG_ERROR, DFLASH_LOG_WARNING, DFLASH_LOG_INFO, DFLASH_LOG_DEBUG };

void dflash_log_level(int level); /* default DFLASH_LOG_WARNING */
void dflash_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line that rewrites itself, shown only when stderr is a terminal: "verify 3/12 attn.mix/2". */
void dflash_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void dflash_progress_done(void);

#endif
