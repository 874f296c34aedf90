/* What an entry of a dump may claim, as plain numbers and names. Whatever is let through must be usable: a stage with
 * values, a layer that is there, sizes whose bytes can be counted. */
#include <stdlib.h>
#include <string.h>

#include "load/dump.h"
#include "model/geometry.h"
#include "model/stage_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Input {
  const uint8_t *at;
  size_t left;
} Input;

static void take(Input *input, void *out, size_t bytes) {
  size_t got = bytes < input->left ? bytes : input->left;
  memset(out, 0, bytes);
  memcpy(out, input->at, got);
  input->at += got;
  input->left -= got;
}

static int64_t take_i64(Input *input) {
  int64_t value;
  take(input, &value, sizeof value);
  return value;
}

static unsigned take_byte(Input *input) {
  uint8_t value;
  take(input, &value, 1);
  return value;
}

static void expect(bool condition) {
  if (!condition) abort();
}

/* A known stage most of the time, else any text. */
static void take_stage(Input *input, char text[33]) {
  static const char *const checks[] = {"context_state.k", "context_state.v", "block.logits", "block.selector_hidden"};
  unsigned choice = take_byte(input);
  memset(text, 0, 33);
  if (choice < DFLASH_STAGE_COUNT)
    strcpy(text, dflash_stage_row((int32_t)choice)->name);
  else if (choice < 200)
    strcpy(text, checks[choice % 4]);
  else
    take(input, text, 32);
}

static void check_accepted(const DflashDumpEntry *e) {
  const char *check;
  int32_t stage = dflash_dump_stage(e->texts[DFLASH_DUMP_STAGE], &check);
  expect(stage >= 0 && stage < DFLASH_STAGE_COUNT && stage != DFLASH_STAGE_SELECT);
  expect(e->numbers[DFLASH_DUMP_LAYER] >= 0);
  expect(e->numbers[DFLASH_DUMP_LAYER] < dflash_stage_layers(e->geometry, stage));
  expect(e->rows > 0 && e->width > 0 && e->rows <= INT64_MAX / 8 / e->width);
  for (int i = 0; i < e->input_count; i++)
    expect(e->inputs[i].rows >= 0 && e->inputs[i].width > 0 && e->inputs[i].rows <= INT64_MAX / 8 / e->inputs[i].width);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Input input = {data, size};
  DflashGeometry geometry = dflash_preset(take_byte(&input) % dflash_preset_count())->geometry;
  char stage[33], name[17] = {0};
  DflashDumpEntry entry = {.geometry = &geometry};
  take_stage(&input, stage);
  take(&input, name, sizeof name - 1);
  for (int i = 0; i < DFLASH_DUMP_TEXTS; i++) entry.texts[i] = "";
  entry.texts[DFLASH_DUMP_STAGE] = stage;
  entry.texts[DFLASH_DUMP_CASE] = name;
  for (int i = 0; i < DFLASH_DUMP_NUMBERS; i++)
    entry.numbers[i] = take_byte(&input) % 4 ? take_byte(&input) : take_i64(&input);
  entry.rows = take_byte(&input) % 4 ? take_byte(&input) : take_i64(&input);
  const char *check;
  int32_t found = dflash_dump_stage(stage, &check);
  const DflashRunSizes sizes = {.head_width = geometry.vocab};
  bool right = found != DFLASH_STAGE_NONE && take_byte(&input) % 4;
  entry.width = right ? dflash_stage_width(&geometry, &sizes, found) : take_i64(&input);
  entry.input_count = take_byte(&input) % (DFLASH_STAGE_INPUTS + 1);
  for (int i = 0; i < entry.input_count; i++) {
    entry.inputs[i].rows = take_i64(&input);
    entry.inputs[i].width = take_i64(&input);
  }
  if (dflash_dump_check(&entry, NULL) == DFLASH_OK) check_accepted(&entry);
  return 0;
}
