/* Names of unfinished files, removed when a signal ends the process. Internal to base. */
#ifndef DFLASH_BASE_UNFINISHED_H
#define DFLASH_BASE_UNFINISHED_H

/* Lists a file; returns its place for release, -1 when it could not be listed (it then survives a signal). Each call
 * makes sure that SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, where their action is the default, first remove what
 * this process has listed; the default action follows. */
int dflash_unfinished_add(const char *path);
void dflash_unfinished_release(int place); /* -1 is allowed */

/* SIGXFSZ, where its action is the default, is ignored from then on: write fails with EFBIG instead. */
void dflash_size_limit_ignore(void);

#endif
