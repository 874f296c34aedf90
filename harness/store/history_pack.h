/* JSON lines in few bytes and back (docs/history.md). Internal to the history. */
#ifndef DFLASH_STORE_HISTORY_PACK_H
#define DFLASH_STORE_HISTORY_PACK_H

#include <stddef.h>

#include "base/text.h"
#include "dflash/status.h"

#define DFLASH_PACK_LIMIT ((size_t)1 << 28) /* bytes that a pack may inflate to, and its lines have */

/* lines: what dflash_record_line gives, each ended by a newline; NUL-terminated. Appends the pack. */
DflashStatus dflash_pack(const char *lines, size_t size, DflashText *pack, DflashError *error);

/* Appends the lines; their numbers have as many digits as they need, so the text may differ, not the values.
 * DFLASH_INVALID_DATA: the bytes are no pack. What comes out need not be JSON then. */
DflashStatus dflash_unpack(const void *pack, size_t size, DflashText *lines, DflashError *error);

#endif
