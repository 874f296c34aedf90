#include "run/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "load/dump.h"
#include "model/geometry.h"
#include "run/dump_parts.h"

/* A file without a name: it goes when its last descriptor does. */
static int open_unnamed(const char *path) {
  DflashText name = {0};
  dflash_text_append(&name, "%s.tmp-XXXXXX", path);
  int descriptor = name.failed ? -1 : mkostemp(name.data, O_CLOEXEC);
  if (descriptor >= 0) unlink(name.data);
  dflash_text_free(&name);
  return descriptor;
}

/* What writes the dump at the end makes its file beside the place now, and takes it away again. */
static DflashStatus check_place(const char *path, DflashError *error) {
  DflashOutput output;
  DflashStatus status = dflash_output_open(&output, path, error);
  if (status == DFLASH_OK) dflash_output_abort(&output);
  return status;
}

DflashStatus dflash_spool_open(const char *path, int64_t limit, DflashDumpSpool **spool, DflashError *error) {
  DflashDumpSpool *s = calloc(1, sizeof *s);
  *spool = NULL;
  if (s == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a dump");
  *s =
      (DflashDumpSpool){.path = path, .limit = limit, .descriptor = open_unnamed(path), .entries = cJSON_CreateArray()};
  DflashStatus status = s->descriptor >= 0 && s->entries != NULL
                            ? check_place(path, error)
                            : dflash_error_set(error, DFLASH_IO, "%s: cannot be written: %s", path, strerror(errno));
  if (status == DFLASH_OK)
    *spool = s;
  else
    dflash_spool_close(s);
  return status;
}

void dflash_spool_close(DflashDumpSpool *spool) {
  if (spool == NULL) return;
  if (spool->descriptor >= 0) close(spool->descriptor);
  cJSON_Delete(spool->entries);
  free(spool);
}

static const char *text_of(const cJSON *record, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, name));
  return text != NULL ? text : "";
}

static int64_t whole_of(const cJSON *record, const char *name, int64_t absent) {
  double value = cJSON_GetNumberValue(cJSON_GetObjectItem(record, name));
  return fabs(value) < 0x1p53 ? (int64_t)value : absent; /* NaN when absent */
}

static double real_of(const cJSON *record, const char *name) {
  const cJSON *item = cJSON_GetObjectItem(record, name);
  if (!cJSON_IsString(item)) return cJSON_GetNumberValue(item);
  return strcmp(item->valuestring, "inf") == 0 ? INFINITY : strcmp(item->valuestring, "-inf") == 0 ? -INFINITY : NAN;
}

static void take_entry(DflashDumpSpool *spool, const cJSON *record) {
  if (cJSON_IsTrue(cJSON_GetObjectItem(record, "left_out"))) {
    spool->left_out++;
    return;
  }
  cJSON *copy = cJSON_Duplicate(record, 1);
  if (copy == NULL || !cJSON_AddItemToArray(spool->entries, copy)) {
    cJSON_Delete(copy);
    spool->left_out++;
  }
}

static bool same_place(const cJSON *a, const cJSON *b) {
  return strcmp(text_of(a, "mode"), text_of(b, "mode")) == 0 && strcmp(text_of(a, "stage"), text_of(b, "stage")) == 0 &&
         strcmp(text_of(a, "case"), text_of(b, "case")) == 0 && whole_of(a, "layer", 0) == whole_of(b, "layer", 0);
}

static void copy_member(cJSON *entry, const cJSON *record, const char *name) {
  const cJSON *member = cJSON_GetObjectItem(record, name);
  cJSON *copy = member != NULL ? cJSON_Duplicate(member, 1) : NULL;
  if (copy == NULL) return;
  cJSON_DeleteItemFromObject(entry, name);
  cJSON_AddItemToObject(entry, name, copy);
}

/* Whether an error is inherited is known when the case ends. */
static void take_verdict(DflashDumpSpool *spool, const cJSON *record) {
  bool found = false;
  for (cJSON *e = cJSON_GetArrayItem(spool->entries, spool->in_case); e != NULL; e = e->next) {
    if (!same_place(e, record)) continue;
    copy_member(e, record, "inherited");
    copy_member(e, record, "note");
    found = true;
  }
  bool failed = dflash_outcome_is_failure(dflash_outcome_find(text_of(record, "outcome")));
  spool->valueless += failed && !found && cJSON_GetObjectItem(record, "elements") == NULL;
}

bool dflash_spool_take(DflashDumpSpool *spool, const cJSON *record) {
  const char *type = text_of(record, "type");
  if (strcmp(type, "dump") == 0) {
    if (spool != NULL) take_entry(spool, record);
    return true;
  }
  if (spool != NULL && strcmp(type, "verdict") == 0) take_verdict(spool, record);
  if (spool != NULL && strcmp(type, "case") == 0) spool->in_case = cJSON_GetArraySize(spool->entries);
  return false;
}

/* Takes `bytes` of the block; NULL when they are not there: a child gone wild may tell anything. */
typedef struct Cursor {
  const unsigned char *data;
  int64_t left;
} Cursor;

static const void *take(Cursor *cursor, int64_t rows, int64_t width) {
  int64_t count, bytes;
  if (!dflash_mul_i64(rows, width, &count) || !dflash_mul_i64(count, sizeof(float), &bytes) || bytes > cursor->left)
    return NULL;
  const void *data = cursor->data;
  cursor->data += bytes;
  cursor->left -= bytes;
  return data;
}

static bool take_inputs(Cursor *cursor, const cJSON *record, DflashDumpEntry *entry) {
  const cJSON *input;
  cJSON_ArrayForEach(input, cJSON_GetObjectItem(record, "inputs")) {
    if (entry->input_count == DFLASH_STAGE_INPUTS) return false;
    DflashDumpInput *in = &entry->inputs[entry->input_count++];
    *in = (DflashDumpInput){text_of(input, "source"), whole_of(input, "rows", -1), whole_of(input, "width", -1), NULL};
    in->data = take(cursor, in->rows, in->width);
    if (in->data == NULL) return false;
  }
  return true;
}

static bool take_values(Cursor *cursor, const cJSON *record, DflashDumpEntry *entry) {
  bool scaled = cJSON_IsTrue(cJSON_GetObjectItem(record, "scaled"));
  entry->got = take(cursor, entry->rows, entry->width);
  entry->expected = take(cursor, entry->rows, entry->width);
  entry->sigma = scaled ? take(cursor, entry->rows, entry->width) : NULL;
  if (entry->got == NULL || entry->expected == NULL || (scaled && entry->sigma == NULL)) return false;
  return take_inputs(cursor, record, entry);
}

static void take_attributes(const cJSON *record, DflashDumpEntry *entry) {
  for (int i = 0; i < DFLASH_DUMP_TEXTS; i++) entry->texts[i] = text_of(record, dflash_dump_texts[i]);
  entry->texts[DFLASH_DUMP_GOLDEN] = text_of(record, "file");
  entry->numbers[DFLASH_DUMP_LAYER] = whole_of(record, "layer", 0);
  entry->numbers[DFLASH_DUMP_POSITION] = whole_of(record, "position", -1);
  entry->numbers[DFLASH_DUMP_DAMAGE] = whole_of(record, "damage", 0);
  entry->numbers[DFLASH_DUMP_INHERITED] = cJSON_IsTrue(cJSON_GetObjectItem(record, "inherited"));
  entry->score = real_of(record, "score");
  entry->lambda = DFLASH_LAMBDA;
  entry->rows = whole_of(record, "rows", -1);
  entry->width = whole_of(record, "width", -1);
}

typedef struct Contents {
  const unsigned char *data;
  int64_t size;
} Contents;

static DflashStatus add_entry(DflashDumpWriter *writer, const Contents *contents, const cJSON *record,
                              DflashError *error) {
  int64_t at = whole_of(record, "at", -1), size = whole_of(record, "size", -1);
  DflashGeometry geometry;
  DflashDumpEntry entry = {.geometry = &geometry};
  bool inside = at >= 0 && size >= (int64_t)sizeof geometry && at <= contents->size && size <= contents->size - at;
  if (!inside) return dflash_error_set(error, DFLASH_INTERNAL, "a dumped value is not where it should be");
  memcpy(&geometry, contents->data + at, sizeof geometry);
  Cursor cursor = {contents->data + at + sizeof geometry, size - (int64_t)sizeof geometry};
  take_attributes(record, &entry);
  DflashStatus status = dflash_geometry_check(&geometry, error);
  if (status == DFLASH_OK && !take_values(&cursor, record, &entry))
    status = dflash_error_set(error, DFLASH_INTERNAL, "a dumped value is not whole");
  return status == DFLASH_OK ? dflash_dump_add(writer, &entry, error) : status;
}

static DflashStatus write_entries(const DflashDumpSpool *spool, const Contents *contents, DflashError *error) {
  DflashDumpWriter *writer;
  const cJSON *record;
  DflashStatus status = dflash_dump_create(spool->path, &writer, error);
  if (status != DFLASH_OK) return status;
  cJSON_ArrayForEach(record, spool->entries) {
    if (status == DFLASH_OK) status = add_entry(writer, contents, record, error);
  }
  if (status == DFLASH_OK) return dflash_dump_commit(writer, spool->left_out, error);
  dflash_dump_abort(writer);
  return status;
}

static void say(const DflashDumpSpool *spool, FILE *out) {
  int count = cJSON_GetArraySize(spool->entries);
  if (out != NULL && count == 0)
    fprintf(out, "dump: %s is not written: %s\n", spool->path,
            spool->left_out > 0    ? "nothing is within --dump-limit"
            : spool->valueless > 0 ? "the failures have no values"
                                   : "no value failed");
  if (out != NULL && count > 0) {
    const int64_t all = count + spool->left_out + spool->valueless;
    fprintf(out, "dump: %s holds %d failing value%s", spool->path, count, count == 1 ? "" : "s");
    if (all > count) fprintf(out, " of %lld failures", (long long)all);
    if (spool->valueless > 0)
      fprintf(out, "; %lld ha%s no values", (long long)spool->valueless, spool->valueless == 1 ? "s" : "ve");
    fputc('\n', out);
  }
  if (spool->left_out > 0)
    dflash_log(DFLASH_LOG_WARNING, "%s: %lld more failing values are left out: past --dump-limit, or no space for them",
               spool->path, (long long)spool->left_out);
}

DflashStatus dflash_spool_write(DflashDumpSpool *spool, FILE *out, DflashError *error) {
  struct stat info;
  DflashStatus status = DFLASH_OK;
  if (cJSON_GetArraySize(spool->entries) > 0) {
    Contents contents = {NULL, fstat(spool->descriptor, &info) == 0 ? (int64_t)info.st_size : 0};
    void *data = mmap(NULL, (size_t)contents.size, PROT_READ, MAP_PRIVATE, spool->descriptor, 0);
    if (data == MAP_FAILED)
      return dflash_error_set(error, DFLASH_IO, "%s: cannot be read back: %s", spool->path, strerror(errno));
    contents.data = data;
    status = write_entries(spool, &contents, error);
    munmap(data, (size_t)contents.size);
  }
  if (status == DFLASH_OK) say(spool, out);
  return status;
}
