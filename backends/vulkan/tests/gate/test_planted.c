/* Does the gate see what can go wrong in this backend? Each plant must be found on a golden that can show it, at the
 * stage where it is; the same module without a plant must pass on all of these goldens. */
#include "gate.h"

typedef struct Row {
  const char *plant, *golden, *profile;
  const char *stage; /* what the verdict names first; a law has no layer */
  int layer;         /* -1: none */
  const char *option, *note;
} Row;

enum { NO_LAYER = -1 };

#define TINY GATE_FILE("tiny-f32.h5")
#define ODD GATE_FILE("odd-groups.h5")
#define EMPTY GATE_FILE("kernel4-empty.h5")
#define ON_UNITS "matrix=cooperative --option units=emulated"

static const Row rows[] = {
    /* barriers of a workgroup */
    {"norm-barrier", TINY, "exact", "context.norm", NO_LAYER, NULL, NULL},
    {"tile-barrier", TINY, "exact", "context.fc", NO_LAYER, NULL, NULL},
    {"team-barrier", ODD, "exact", "context.fc", NO_LAYER, NULL, NULL},
    {"quantise-barrier", ODD, "i8", "context.k_proj", 0, NULL, NULL},
    {"score-barrier", TINY, "exact", "attn.mix", 0, NULL, NULL},
    {"value-barrier", TINY, "exact", "attn.mix", 0, NULL, NULL},
    /* rows and their elements */
    {"norm-columns", TINY, "exact", "context.norm", NO_LAYER, NULL, NULL},
    {"conv-taps", TINY, "exact", "attn.conv_in", 0, NULL, NULL},
    {"out-side", TINY, "exact", "attn.out", 0, NULL, NULL},
    {"act-operands", TINY, "exact", "mlp.act", 0, NULL, NULL},
    {"heads-pairs", TINY, "exact", "context.k", 0, NULL, NULL},
    {"rotation-turns", GATE_FILE("far-bf16.h5"), "exact", "context.k", 0, NULL, NULL},
    /* matrices */
    {"columns-tail", TINY, "exact", "mlp.down", 0, NULL, NULL},
    {"rows-tail", TINY, "exact", "context.fc", NO_LAYER, NULL, NULL},
    {"out-rows-tail", EMPTY, "exact", "head.logits", NO_LAYER, NULL, NULL},
    {"field-tail", ODD, "exact", "attn.kernel", 0, NULL, NULL},
    {"next-group", ODD, "exact", "context.k_proj", 0, NULL, NULL},
    {"next-rung", ODD, "exact", "context.k_proj", 0, NULL, NULL},
    {"rung-i8", ODD, "i8", "context.k_proj", 0, "dot=off", NULL},
    {"x-16-bits", ODD, "exact", "context.k_proj", 0, NULL, NULL},
    {"x-22-bits", "exact-24bit.h5", "exact", "context.k_proj", 0, NULL, NULL},
    {"half-away", "halves.h5", "i8", "context.k_proj", 0, NULL, NULL},
    {"half-scale", ODD, "f16", "context.k_proj", 0, NULL, NULL},
    {"half-bits", ODD, "f16", "context.fc", NO_LAYER, NULL, NULL},
    {"units-parts", ODD, "exact", "context.k_proj", 0, ON_UNITS, NULL},
    {"units-codes", ODD, "exact", "context.k_proj", 0, ON_UNITS, NULL},
    {"units-splits", "wide.h5", "exact", "mlp.down", 0, ON_UNITS " --option join=off", NULL},
    {"units-apart", "wide.h5", "exact", "mlp.down", 0, ON_UNITS, NULL},
    {"units-shares", "shares.h5", "exact", "context.k_proj", 0, ON_UNITS, NULL},
    {"prepare-field", ODD, "exact", "context.fc", NO_LAYER, ON_UNITS, NULL},
    {"prepare-group", ODD, "exact", "mlp.gate", 0, ON_UNITS " --option join=off", NULL},
    {"prepare-halves", "halves.h5", "i8", "context.k_proj", 0, ON_UNITS, NULL},
    {"fragments-group", ODD, "exact", "mlp.gate", 0, ON_UNITS, NULL},
    {"fragments-barrier", ODD, "exact", "mlp.down", 0, ON_UNITS, NULL},
    {"fragments-field", ODD, "exact", "attn.kernel", 0, ON_UNITS, NULL},
    {"fragments-row", ODD, "exact", "head.logits", NO_LAYER, ON_UNITS, NULL},
    {"fragments-form", ODD, "exact", "selector.hidden", NO_LAYER, ON_UNITS, NULL},
    {"fragments-head", ODD, "exact", "attn.o_proj", 0, ON_UNITS, NULL},
    {"conv-sums", "split.h5", "f16", "attn.kernel", 0, ON_UNITS, NULL},
    {"conv-share", "split.h5", "f16", "attn.kernel", 0, ON_UNITS, NULL},
    {"act-sums", "split.h5", "f16", "mlp.gate", 0, ON_UNITS, NULL},
    {"out-sums", "wide.h5", "exact", "mlp.down", 0, ON_UNITS, NULL},
    {"heads-sums", "split.h5", "f16", "attn.v_proj", 0, ON_UNITS, NULL},
    /* attention */
    {"kv-head", TINY, "exact", "attn.mix", 0, NULL, NULL},
    {"window-row", TINY, "exact", "attn.mix", 1, NULL, NULL},
    {"rescale", "context-300.h5", "exact", "attn.mix", 0, "splits=1", NULL},
    {"units-window", "heads-32.h5", "f16", "attn.mix", 0, ON_UNITS " --option splits=1", NULL},
    {"units-rescale", "heads-32.h5", "f16", "attn.mix", 0, ON_UNITS " --option splits=1", NULL},
    {"units-second", "heads-32.h5", "exact", "attn.mix", 0, ON_UNITS, NULL},
    {"units-halves", "heads-32.h5", "exact", "attn.mix", 0, ON_UNITS, NULL},
    {"empty-part", EMPTY, "exact", "attn.mix", 0, NULL, NULL},
    {"part-lost", TINY, "exact", "attn.mix", 0, NULL, NULL},
    /* tokens */
    {"equal-lost", "ties-wide.h5", "exact", "select", NO_LAYER, "assume=threads:256", NULL},
    {"ties-higher", "ties.h5", "exact", "select", NO_LAYER, NULL, NULL},
    {"last-row", TINY, "exact", "select", NO_LAYER, NULL, NULL},
    {"gather-row", ODD, "exact", "select", NO_LAYER, "assume=binding:12K", NULL},
    {"before-row", TINY, "exact", "select", NO_LAYER, NULL, NULL},
    {"rank-tail", ODD, "exact", "select", NO_LAYER, NULL, NULL},
    {"pairs-row", TINY, "exact", "select", NO_LAYER, NULL, NULL},
    /* the host: barriers between steps, inputs of the block before, rows of the context */
    {"none", TINY, "exact", "block", NO_LAYER, "skip-barrier=1", "SYNC-HAZARD"},
    {"none", TINY, "exact", "block", NO_LAYER, "skip-barrier=30", "SYNC-HAZARD"},
    {"stale-h", TINY, "exact", "rounds", NO_LAYER, NULL, NULL},
    {"stale-visible", TINY, "exact", "rounds", NO_LAYER, NULL, NULL},
    {"late-row", "context-300.h5", "exact", "rewind", NO_LAYER, NULL, NULL},
};

enum { ROWS = sizeof rows / sizeof rows[0], SHADER_PLANTS = 59, HOST_PLANTS = 3 };

static Program verify(const Row *row, const char *plant, const char *option) {
  return program("verify %s -q --backend vulkan-planted --profile %s --option validation=on --option plant=%s%s%s "
                 "--json planted.json",
                 row->golden, row->profile, plant, option ? " --option " : "", option ? option : "");
}

/* The case record's first failure names the stage and layer. */
static void assert_first(const Row *row, const Program *p) {
  cJSON *records = read_records("planted.json");
  const cJSON *first = NULL, *record;
  cJSON_ArrayForEach(record, records) {
    if (strcmp(text_in(record, "type"), "case") == 0) first = cJSON_GetObjectItemCaseSensitive(record, "first");
  }
  const cJSON *layer = cJSON_GetObjectItemCaseSensitive(first, "layer");
  if (!first || strcmp(text_in(first, "stage"), row->stage) != 0 || (layer ? layer->valueint : NO_LAYER) != row->layer)
    fail_msg("%s\nnames %s/%d first, expected %s/%d", p->command, first ? text_in(first, "stage") : "nothing",
             layer ? layer->valueint : NO_LAYER, row->stage, row->layer);
  if (row->note) expect_contains(p, text_in(first, "note"), row->note);
  cJSON_Delete(records);
}

static void is_found(void **state) {
  const Row *row = *state;
  remove("planted.json");
  Program p = verify(row, row->plant, row->option);
  expect_status(&p, 1);
  assert_first(row, &p);
  program_close(&p);
}

/* Every golden, profile and option that shows something passes where nothing is planted. */
static bool ran_before(int row) {
  for (int i = 0; i < row; i++)
    if (strcmp(rows[i].golden, rows[row].golden) == 0 && strcmp(rows[i].profile, rows[row].profile) == 0) return true;
  return false;
}

static void nothing_planted_passes(void **state) {
  (void)state;
  for (int i = 0; i < ROWS; i++) {
    if (ran_before(i)) continue;
    remove("planted.json");
    Program p = verify(&rows[i], "none", NULL);
    expect_status(&p, 0);
    program_close(&p);
  }
}

/* No plant is left out of the table above, and each name in it is one. */
static void all_are_asked_for(void **state) {
  (void)state;
  int shader = 0, host = 0;
  for (int i = 0; i < ROWS; i++) {
    const bool of_host = strncmp(rows[i].plant, "stale-", 6) == 0 || strcmp(rows[i].plant, "late-row") == 0;
    host += of_host;
    shader += !of_host && strcmp(rows[i].plant, "none") != 0;
  }
  assert_int_equal(shader, SHADER_PLANTS);
  assert_int_equal(host, HOST_PLANTS);
  Program p = program("verify " TINY " --backend vulkan-planted --option plant=nonsense");
  char known[64];
  snprintf(known, sizeof known, "there are %d of shaders, %d of the host", SHADER_PLANTS, HOST_PLANTS);
  expect_contains(&p, p.err, known);
  program_close(&p);
}

static int setup(void **state) {
  if (scratch_setup(state) != 0) return -1;
  gate_make("--recipe " GATE_RECIPE("exact-24bit") " -o exact-24bit.h5");
  gate_make("--recipe " GATE_RECIPE("context-300") " -o context-300.h5");
  gate_make("--recipe " GATE_RECIPE("ties") " -o ties.h5");
  /* equal logits in more than one chunk of 4096 */
  gate_make(
      "--preset tiny --set layers=1 --set vocab=5041 --set mask_token=5040 --set selector_top=180 --set hidden=32 "
      "--set head_dim=8 --storage f16 --case ties -o ties-wide.h5");
  /* wide enough for columns to be split among workgroups */
  gate_make("--preset tiny --set layers=1 --set hidden=64 --set intermediate=1664 --set head_dim=16 --storage f16 "
            "--case main -o wide.h5");
  /* and so are the columns of hidden */
  gate_make("--preset tiny --set layers=1 --set hidden=1056 --set intermediate=32 --set head_dim=16 --set taps=0 "
            "--set vocab=64 --set mask_token=63 --context 3 --storage f16 --case main -o split.h5");
  /* two rounds of columns, which subgroups share */
  gate_make("--preset tiny --set layers=1 --set hidden=512 --set intermediate=32 --set head_dim=16 --set taps=0 "
            "--set vocab=64 --set mask_token=63 --context 3 --storage sidecar --case main -o shares.h5");
  /* heads that attention takes on matrix units, in several steps, the first of them behind the window's edge */
  gate_make("--preset tiny --set layers=1 --set head_dim=32 --set window=150 --context 200 --case main -o heads-32.h5");
  /* a row of context.norm that the backend puts half way between two codes */
  gate_make("--preset tiny --set heads=4 --set kv_heads=1 --set head_dim=8 --set layers=1 --set intermediate=32 "
            "--set selector_rank=4 --storage sidecar --context 2000 --seed 6 --case main -o halves.h5");
  return 0;
}

int main(void) {
  gate_need_device();
  struct CMUnitTest tests[ROWS + 2] = {cmocka_unit_test(nothing_planted_passes), cmocka_unit_test(all_are_asked_for)};
  for (int i = 0; i < ROWS; i++)
    tests[i + 2] = (struct CMUnitTest){.name = rows[i].plant, .test_func = is_found, .initial_state = (void *)&rows[i]};
  return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
