/* Packs of a history: the first byte says what the rest is: a pack, what a pack inflates to - either from a damaged
 * file, which may give anything but a crash - or JSON, which comes back as it was. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cjson/cJSON.h>

#include "store/fields.h"
#include "store/history_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_unpack(const void *pack, size_t size) {
  DflashText lines = {0};
  if (dflash_unpack(pack, size, &lines, NULL) == DFLASH_OK && lines.size > 0 && lines.data == NULL) abort();
  dflash_text_free(&lines);
}

static void check_inflated(const uint8_t *data, size_t size) {
  uLongf packed = compressBound(size);
  Bytef *pack = malloc(packed);
  if (pack == NULL || compress(pack, &packed, data, size) != Z_OK) abort();
  check_unpack(pack, packed);
  free(pack);
}

static void expect_same(const char *line, const DflashText *back) {
  cJSON *again = cJSON_Parse(back->data);
  char *text = again != NULL ? dflash_record_line(again) : NULL;
  if (text == NULL || strlen(text) + 1 != strlen(line) || strncmp(text, line, strlen(text)) != 0) abort();
  free(text);
  cJSON_Delete(again);
}

static void check_round_trip(const char *text, size_t size) {
  DflashText line = {0}, pack = {0}, back = {0};
  cJSON *record = cJSON_ParseWithLength(text, size);
  char *printed = record != NULL ? dflash_record_line(record) : NULL;
  if (printed != NULL) dflash_text_append(&line, "%s\n", printed);
  if (printed != NULL && dflash_pack(line.data, line.size, &pack, NULL) == DFLASH_OK) {
    if (dflash_unpack(pack.data, pack.size, &back, NULL) != DFLASH_OK) abort();
    expect_same(line.data, &back);
  }
  dflash_text_free(&back);
  dflash_text_free(&pack);
  dflash_text_free(&line);
  free(printed);
  cJSON_Delete(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  if (data[0] % 3 == 0)
    check_unpack(data + 1, size - 1);
  else if (data[0] % 3 == 2)
    check_inflated(data + 1, size - 1);
  else
    check_round_trip((const char *)data + 1, size - 1);
  return 0;
}
