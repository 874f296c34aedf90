#include "run/peers.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "model/geometry.h"
#include "run/case_run.h"
#include "store/fields.h"

#define FILE_LIMIT (UINT64_C(64) << 20)

/* The next `peer` record that holds a time; *at starts at 0. NULL: no more. */
static const cJSON *next_timed(const DflashPeers *peers, int64_t *at, int64_t *line) {
  while (*at < peers->runs.record_count) {
    const cJSON *record = peers->runs.records[(*at)++];
    if (line != NULL) *line = *at;
    if (dflash_record_is(record, "peer") && dflash_field(record, "time") != NULL) return record;
  }
  return NULL;
}

static double median_of(const cJSON *record) { return dflash_field_number(dflash_field(record, "time"), "median"); }

static bool positive(double value) { return isfinite(value) && value > 0; }

/* NULL when all is well, else what is wrong with a timed record. */
static const char *check_record(const cJSON *record) {
  static const char *const texts[] = {"peer", "way", "library", "case", "device_name", "outcome"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (dflash_field_text(record, texts[i])[0] == '\0')
      return "lacks one of peer, way, library, case, device_name, outcome";
  if (strcmp(dflash_field_text(record, "outcome"), "pass") != 0) return "has a time though it did not pass";
  if (!positive(median_of(record))) return "has no median above 0";
  if (!positive(dflash_field_number(record, "share_read"))) return "has no share_read above 0";
  if (!positive(dflash_field_number(record, "least_share"))) return "has no least_share above 0";
  return NULL;
}

DflashStatus dflash_peers_parse(const char *text, uint64_t size, const char *name, DflashPeers *peers,
                                DflashError *error) {
  *peers = (DflashPeers){.name = name};
  DflashStatus status = dflash_runs_parse(&peers->runs, text, size, name, error);
  int64_t at = 0, line = 0;
  const cJSON *record = NULL;
  while (status == DFLASH_OK && (record = next_timed(peers, &at, &line)) != NULL) {
    const char *wrong = check_record(record);
    if (wrong != NULL)
      status =
          dflash_error_set(error, DFLASH_INVALID_DATA, "%s: record %lld, a peer, %s", name, (long long)line, wrong);
    peers->count++;
  }
  if (status == DFLASH_OK && peers->count == 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: holds no peer with a time (docs/peers.md)", name);
  return status;
}

DflashStatus dflash_peers_read(const char *path, DflashPeers *peers, DflashError *error) {
  char *text = NULL;
  uint64_t size = 0;
  *peers = (DflashPeers){0};
  DflashStatus status = dflash_read_file(path, FILE_LIMIT, &text, &size, error);
  if (status == DFLASH_OK) status = dflash_peers_parse(text, size, path, peers, error);
  free(text);
  return status;
}

void dflash_peers_close(DflashPeers *peers) { dflash_runs_close(&peers->runs); }

static DflashStatus differs(const DflashPeers *peers, const char *what, const char *theirs, const char *own,
                            DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: the peer ran another %s: '%.60s', here '%.60s'", peers->name,
                          what, theirs, own);
}

/* A golden without hashes is told apart from no other. */
static DflashStatus check_hash(const DflashPeers *peers, const cJSON *record, const DflashSession *session,
                               const char *name, DflashError *error) {
  const char *theirs = dflash_field_text(record, name), *own = dflash_session_attribute(session, name);
  if (own[0] == '\0')
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s has no %s: nothing says that the peer ran the same golden",
                            session->file, name);
  return strcmp(theirs, own) == 0 ? DFLASH_OK : differs(peers, name, theirs, own, error);
}

static DflashStatus check_geometry(const DflashPeers *peers, const cJSON *record, const DflashSession *session,
                                   DflashError *error) {
  DflashGeometry geometry;
  DflashStatus status = dflash_geometry_from_json(dflash_field(record, "geometry"), &geometry, error);
  if (status != DFLASH_OK) {
    dflash_error_prefix(error, "%s", peers->name);
    return status;
  }
  if (dflash_geometry_equal(&geometry, session->geometry)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: the peer ran another geometry", peers->name);
}

static DflashStatus check_one(const DflashPeers *peers, const cJSON *record, const DflashCaseRun *run,
                              DflashError *error) {
  const DflashSession *s = run->session;
  const char *device = dflash_field_text(record, "device_name"), *name = dflash_field_text(record, "case");
  DflashStatus status = check_geometry(peers, record, s, error);
  if (status == DFLASH_OK) status = check_hash(peers, record, s, "inputs_hash", error);
  if (status == DFLASH_OK) status = check_hash(peers, record, s, "values_hash", error);
  if (status == DFLASH_OK && strcmp(name, run->c.name) != 0) status = differs(peers, "case", name, run->c.name, error);
  if (status == DFLASH_OK && strcmp(device, s->device.name) != 0)
    status = differs(peers, "device", device, s->device.name, error);
  return status;
}

DflashStatus dflash_peers_check(const DflashPeers *peers, const DflashCaseRun *run, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  int64_t at = 0;
  const cJSON *record = NULL;
  while (status == DFLASH_OK && (record = next_timed(peers, &at, NULL)) != NULL)
    status = check_one(peers, record, run, error);
  return status;
}

void dflash_peers_add(const DflashPeers *peers, cJSON *record, double block_ns) {
  static const char *const texts[] = {"peer", "way", "library"};
  cJSON *list = cJSON_AddArrayToObject(record, "peers");
  int64_t at = 0;
  for (const cJSON *peer = NULL; block_ns > 0 && (peer = next_timed(peers, &at, NULL)) != NULL;) {
    const double share = dflash_field_number(peer, "share_read"), least = dflash_field_number(peer, "least_share");
    cJSON *one = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
      cJSON_AddStringToObject(one, texts[i], dflash_field_text(peer, texts[i]));
    cJSON_AddNumberToObject(one, "ns", median_of(peer));
    cJSON_AddNumberToObject(one, "share_read", share);
    cJSON_AddNumberToObject(one, "least_share", least);
    cJSON_AddNumberToObject(one, "ratio", median_of(peer) / block_ns);
    cJSON_AddBoolToObject(one, "counts", share >= least);
    cJSON_AddItemToArray(list, one);
  }
}
