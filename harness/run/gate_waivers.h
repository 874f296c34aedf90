/* Waivers: known faults that a gate lets pass, until a day and up to a measure. */
#ifndef DFLASH_RUN_GATE_WAIVERS_H
#define DFLASH_RUN_GATE_WAIVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "dflash/status.h"

struct cJSON;

/* Texts belong to the file's tree. */
typedef struct DflashWaiver {
  const char *id, *device, *until,
      *why;                      /* device: pattern over its id and its name; until: "2027-01-31", that day too */
  const char *case_name, *stage; /* patterns; NULL: any. stage: over "attn.mix", "attn.mix/1", a group's name */
  double score, time_share;      /* the worst that is excused; NaN: nothing of that kind */
  bool used;
} DflashWaiver;

typedef struct DflashWaivers {
  struct cJSON *file;
  DflashWaiver *at;
  int64_t count;
} DflashWaivers;

/* {"waivers": [{"id", "device", "case" or "stage" or both, "until", "why", "score" or "time_share" or both}]}. Anything
 * else, a member that is not known, an id given twice or a day that does not exist is DFLASH_INVALID_DATA. */
DflashStatus dflash_waivers_parse(const char *text, uint64_t size, const char *name, DflashWaivers *waivers,
                                  DflashError *error);
DflashStatus dflash_waivers_read(const char *path, DflashWaivers *waivers, DflashError *error);
void dflash_waivers_close(DflashWaivers *waivers);

/* "YYYY-MM-DD", a day of the calendar. */
bool dflash_day_valid(const char *day);

/* What asks to be excused. */
typedef struct DflashFault {
  const char *device, *device_name, *case_name, *stage, *label; /* label: stage and layer */
  double score, time_share;                                     /* one of them; the other NaN */
} DflashFault;

/* The waiver that excuses a fault on that day; NULL: none. *expired: one that would have. */
DflashWaiver *dflash_waivers_find(DflashWaivers *waivers, const DflashFault *fault, const char *day,
                                  const DflashWaiver **expired);

#endif
