/* Times of the same block in another library, measured on this device (docs/peers.md), beside which bench sets its own.
 */
#ifndef DFLASH_RUN_PEERS_H
#define DFLASH_RUN_PEERS_H

#include <stdint.h>

#include "run/runs.h"

struct cJSON;
struct DflashCaseRun;

typedef struct DflashPeers {
  const char *name; /* the file's; the caller's text */
  DflashRuns runs;
  int64_t count; /* `peer` records that hold a time */
} DflashPeers;

/* JSON lines of records, at least one of them a `peer` that holds a time. DFLASH_IO, and DFLASH_INVALID_DATA for
 * something else. dflash_peers_close releases, also after a failure. */
DflashStatus dflash_peers_read(const char *path, DflashPeers *peers, DflashError *error);
DflashStatus dflash_peers_parse(const char *text, uint64_t size, const char *name, DflashPeers *peers,
                                DflashError *error);
void dflash_peers_close(DflashPeers *peers);

/* DFLASH_INVALID_DATA when a timed peer ran another golden, case or geometry, or ran on a device of another name. */
DflashStatus dflash_peers_check(const DflashPeers *peers, const struct DflashCaseRun *run, DflashError *error);

/* The member `peers` of a `bench` record whose block took so long: one object for each timed peer. */
void dflash_peers_add(const DflashPeers *peers, struct cJSON *record, double block_ns);

#endif
