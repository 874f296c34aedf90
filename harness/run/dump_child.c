#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "run/dump_parts.h"
#include "run/verify_case.h"

/* The bytes of an entry in the order in which they lie: geometry, got, expected, sigma, inputs. */
typedef struct Block {
  DflashDumpSpool *spool;
  int64_t at, size;
  cJSON *record;
  bool failed;
} Block;

static void put(Block *b, const void *data, int64_t bytes) {
  if (b->failed || bytes == 0) return;
  b->failed = lseek(b->spool->descriptor, b->at + b->size, SEEK_SET) < 0 ||
              dflash_write_all(b->spool->descriptor, "dump", data, (size_t)bytes, NULL) != DFLASH_OK;
  b->size += bytes;
}

static int64_t bytes_of(int64_t rows, int64_t width) { return rows * width * (int64_t)sizeof(float); }

typedef struct Source {
  int32_t stage;
  int64_t layer, rows, width;
} Source;

static Source source_of(const DflashCaseRun *run, const DflashVerdict *verdict, int index) {
  const DflashGeometry *g = run->session->geometry;
  Source s = {0};
  s.stage = dflash_stage_source(g, verdict->stage, verdict->layer, index, &s.layer);
  s.rows = dflash_stage_rows(g, &run->c.sizes, s.stage);
  s.width = dflash_stage_width(g, &run->c.sizes, s.stage);
  return s;
}

/* "attn.norm/0", "held_k/0", "taps": names of sources that are no stage stand here. */
static void name_source(const Source *s, char text[64]) {
  if (s->stage < DFLASH_STAGE_COUNT) {
    dflash_stage_label(s->stage, s->layer, text);
  } else if (s->stage == DFLASH_STAGE_HELD_K || s->stage == DFLASH_STAGE_HELD_V) {
    snprintf(text, 64, "context_state.%s/%lld", s->stage == DFLASH_STAGE_HELD_K ? "k" : "v", (long long)s->layer);
  } else {
    snprintf(text, 64, "%s", s->stage == DFLASH_STAGE_TAPS ? "taps" : "embeddings");
  }
}

static bool has_input(const DflashVerdict *verdict, const DflashDumpValues *values, int index) {
  return verdict->stage != DFLASH_STAGE_NONE && values->inputs[index] != NULL;
}

static int64_t size_of(const DflashCaseRun *run, const DflashVerdict *verdict, const DflashDumpValues *v) {
  int64_t one = bytes_of(v->rows, v->width), size = (int64_t)sizeof(DflashGeometry) + (v->sigma != NULL ? 3 : 2) * one;
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++)
    if (has_input(verdict, v, i)) {
      Source s = source_of(run, verdict, i);
      size += bytes_of(s.rows, s.width);
    }
  return size;
}

static void put_inputs(Block *b, const DflashCaseRun *run, const DflashVerdict *verdict, const DflashDumpValues *v) {
  cJSON *inputs = cJSON_AddArrayToObject(b->record, "inputs");
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    if (!has_input(verdict, v, i)) continue;
    char name[64];
    Source s = source_of(run, verdict, i);
    cJSON *input = cJSON_CreateObject();
    name_source(&s, name);
    cJSON_AddStringToObject(input, "source", name);
    cJSON_AddNumberToObject(input, "rows", (double)s.rows);
    cJSON_AddNumberToObject(input, "width", (double)s.width);
    cJSON_AddItemToArray(inputs, input);
    put(b, v->inputs[i], bytes_of(s.rows, s.width));
  }
}

static void put_values(Block *b, const DflashCaseRun *run, const DflashVerdict *verdict, const DflashDumpValues *v) {
  int64_t one = bytes_of(v->rows, v->width);
  put(b, run->session->geometry, sizeof(DflashGeometry));
  put(b, v->got, one);
  put(b, v->expected, one);
  if (v->sigma != NULL) put(b, v->sigma, one);
  put_inputs(b, run, verdict, v);
}

static cJSON *entry_record(const DflashCaseRun *run, const DflashVerdict *verdict, const DflashDumpValues *v) {
  cJSON *record = dflash_verdict_record(verdict);
  if (record == NULL) return NULL;
  bool held = verdict->stage == DFLASH_STAGE_NONE && dflash_stage_row(v->stage)->rows == DFLASH_ROWS_CONTEXT;
  int64_t position = held ? run->c.context_first : dflash_case_position(run, v->stage);
  cJSON_SetValuestring(cJSON_GetObjectItem(record, "type"), "dump");
  cJSON_AddStringToObject(record, "case", run->c.name);
  cJSON_AddNumberToObject(record, "position", (double)position);
  cJSON_AddNumberToObject(record, "damage", (double)v->damage);
  cJSON_AddNumberToObject(record, "rows", (double)v->rows);
  cJSON_AddNumberToObject(record, "width", (double)v->width);
  cJSON_AddBoolToObject(record, "scaled", v->sigma != NULL);
  char *command = dflash_verify_reproduce(run, verdict);
  if (command != NULL) cJSON_AddStringToObject(record, "reproduce", command);
  free(command);
  return record;
}

void dflash_dump_verdict(DflashCaseRun *run, const DflashVerdict *verdict, const DflashDumpValues *values) {
  DflashDumpSpool *spool = run->session->dump;
  struct stat info;
  /* a run that sends nothing belongs to a law: its verdicts are not the case's */
  if (spool == NULL || run->send == NULL || !dflash_outcome_is_failure(verdict->outcome) ||
      values->rows * values->width == 0)
    return;
  Block block = {.spool = spool, .record = entry_record(run, verdict, values)};
  if (block.record == NULL) return;
  int64_t need = size_of(run, verdict, values);
  block.failed = fstat(spool->descriptor, &info) != 0;
  block.at = block.failed ? 0 : (int64_t)info.st_size;
  bool fits = !block.failed && block.at <= spool->limit && need <= spool->limit - block.at;
  if (fits) put_values(&block, run, verdict, values);
  cJSON_AddNumberToObject(block.record, "at", (double)block.at);
  cJSON_AddNumberToObject(block.record, "size", (double)block.size);
  cJSON_AddBoolToObject(block.record, "left_out", !fits || block.failed);
  dflash_session_send(run->session, block.record);
}
