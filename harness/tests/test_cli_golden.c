/* golden make, info, check: every option, and what each refuses. */
#include "program.h"

#define MAKE "golden make -q -o g.h5 "

/* An output that is refused leaves nothing, or what was there before. */
static void expect_refused(const char *parts, const char *arguments) {
  remove("g.h5");
  expect_error(2, parts, MAKE "%s", arguments);
  assert_false(file_exists("g.h5"));
  expect_no_leftovers();
}

typedef struct Refused {
  const char *arguments, *parts;
} Refused;

static void expect_all_refused(const Refused *list, size_t count, const char *before) {
  char arguments[512];
  for (size_t i = 0; i < count; i++) {
    snprintf(arguments, sizeof arguments, "%s%s", before, list[i].arguments);
    expect_refused(list[i].parts, arguments);
  }
}

#define EXPECT_REFUSED(list, before) expect_all_refused(list, sizeof(list) / sizeof(list)[0], before)

static void test_geometries(void **state) {
  (void)state;
  static const Refused refused[] = {
      {"hidden=0", "hidden is 0"},
      {"hidden=-8", "hidden is -8"},
      {"hidden=63", "hidden is 63|multiple of conv_group (8)"},
      {"intermediate=0", "intermediate is 0"},
      {"layers=0", "layers is 0"},
      {"layers=257", "layers is 257|1 to 256"},
      {"heads=3", "heads is 3|multiple of kv_heads (2)"},
      {"kv_heads=0", "kv_heads is 0"},
      {"head_dim=15", "head_dim is 15|even"},
      {"vocab=0", "vocab is 0"},
      {"block=1", "block is 1|at least 2"},
      {"mask_token=509", "mask_token is 509|below vocab (509)"},
      {"mask_token=-1", "mask_token is -1"},
      {"conv_group=0", "conv_group is 0"},
      {"conv_kernel=0", "conv_kernel is 0"},
      {"selector_rank=0", "selector_rank is 0"},
      {"selector_top=0", "selector_top is 0"},
      {"selector_top=510", "selector_top is 510|at most vocab"},
      {"taps=", "taps is empty"},
      {"taps=0,4", "taps[1] is 4|below target_layers (4)"},
      {"taps=-1", "taps[0] is -1"},
      {"target_layers=0", "target_layers is 0"},
      {"window=-1", "window is -1"},
      {"windows=4", "windows has 1 entries|one a layer (2)"},
      {"windows=4,-1", "windows[1] is -1"},
      {"no_rope=2", "no_rope[0] is 2|below layers (2)"},
      {"rope_theta=0", "rope_theta is 0"},
      {"rope_theta=1e-300", "rope_theta is 1e-300"},
      {"rope_theta=nan", "rope_theta is 'nan'"},
      {"eps=0", "eps is 0"},
      {"eps=-1", "eps is -1"},
      {"eps=inf", "eps is 'inf'"},
      {"hidden=9223372036854775800", "overflows 63 bits with hidden 9223372036854775800"},
      {"intermediate=4611686018427387904", "overflows 63 bits with|intermediate 4611686018427387904"},
      {"heads=4611686018427387904", "overflows 63 bits"},
      {"head_dim=9223372036854775806", "overflows 63 bits"},
      {"vocab=9223372036854775807", "overflows 63 bits"},
      {"conv_kernel=9223372036854775807", "overflows 63 bits"},
      {"selector_rank=9223372036854775807", "overflows 63 bits"},
      {"hidden=9223372036854775808", "hidden is '9223372036854775808'|a whole number"},
      {"hidden=", "hidden is ''"},
      {"hiden=64", "no field 'hiden'; its fields are hidden, intermediate,"},
      {"hidden", "'hidden' is not FIELD=VALUE"},
  };
  EXPECT_REFUSED(refused, "--preset tiny --case main --set ");
}

static void test_recipes(void **state) {
  (void)state;
  static const char other[] = "{\"preset\":\"tiny\",\"set\":{\"hiden\":\"3\"}}";
  write_whole("text.json", "recipe", 6);
  write_whole("other.json", other, sizeof other - 1);
  static const Refused refused[] = {
      {"", "needs one of --preset, --weights and --recipe"},
      {"--preset tiny --recipe text.json", "needs one of"},
      {"--preset tinny", "unknown preset 'tinny'; known are|tiny"},
      {"--preset tiny --case mian", "no case kind matches 'mian'; known are main, rewind,"},
      {"--preset tiny --case main,exact-integer", "exact"},
      {"--preset tiny --storage q3", "q3|sidecar"},
      {"--preset tiny --rows 1", "rows is 1, valid are 2 to 8"},
      {"--preset tiny --rows 9", "rows is 9, valid are 2 to 8"},
      {"--preset tiny --n-draft 0", "n_draft is 0"},
      {"--preset tiny --n-draft 8", "n_draft is 8"},
      {"--preset tiny --head-width 3", "head_width is 3, valid are 4 to 509"},
      {"--preset tiny --head-width 510", "head_width is 510"},
      {"--preset tiny --context 9223372036854775807", "context"},
      {"--preset tiny --seed -1", "--seed: '-1' is not a whole number"},
      {"--preset tiny --seed 18446744073709551616", "--seed: '18446744073709551616'"},
      {"--preset tiny --seed 0x1", "--seed: '0x1' is not a whole number"},
      {"--preset tiny extra", "takes no operand: 'extra'"},
      {"--recipe nosuch.json", "nosuch.json: cannot open"},
      {"--recipe text.json", "text.json: recipe is not one JSON object"},
      {"--recipe other.json", "other.json: |hiden"},
      {"--weights nosuch.dflash.cmf", "nosuch.dflash.cmf: cannot open"},
      {"--weights text.json", "text.json"},
      {"--weights . --set hidden=64", "cannot go with --weights"},
      {"--weights .", "config.json"},
      {"--preset tiny --head nosuch.cmf", "nosuch.cmf"},
      {"--weights " FIXTURE_FILE("sidecar-rewind.dflash.cmf") " --target-hash 12", "12"},
  };
  EXPECT_REFUSED(refused, "");
}

static void test_outputs(void **state) {
  (void)state;
  expect_error(2, "-o FILE is missing", "golden make --preset tiny");
  expect_error(2, "nowhere/g.h5: |No such file or directory", "golden make --preset tiny --case main -o nowhere/g.h5");
  expect_error(2, ".: exists and is not a regular file", "golden make --preset tiny --case main -o .");
  copy_whole(FIXTURE_FILE("sidecar-rewind.dflash.cmf"), "s.dflash.cmf");
  expect_error(2, "s.dflash.cmf: is read: not written over", "golden make --weights s.dflash.cmf -o s.dflash.cmf");
}

/* The same recipe gives the same bytes, whatever the number of threads; another seed does not. */
static void test_a_recipe_gives_one_file(void **state) {
  (void)state;
  const char *sizes = "--preset tiny --case cut --rows 6 --n-draft 3 --head-width 64 --context 9 --storage f16 "
                      "--set eps=1e-5 --seed";
  size_t first_size, size;
  expect_run(0, "golden make -q %s 7 --threads 1 -o a.h5", sizes);
  expect_run(0, "golden make -q %s 007 --threads 2 -o b.h5", sizes);
  expect_run(0, "golden make -q %s 08 -o c.h5", sizes);
  char *first = read_whole("a.h5", &first_size), *same = read_whole("b.h5", &size);
  assert_int_equal(size, first_size);
  assert_memory_equal(first, same, size);
  char *other = read_whole("c.h5", &size);
  assert_true(size != first_size || memcmp(first, other, size) != 0);
  free(first);
  free(same);
  free(other);
}

static cJSON *info_of(const char *path) {
  Program p = program("golden info --json %s", path);
  expect_status(&p, 0);
  cJSON *info = cJSON_Parse(p.out);
  if (!info) fail_msg("no JSON: %s", p.out);
  program_close(&p);
  return info;
}

/* A report longer than any buffer on its way arrives whole. */
static void test_info_of_many_cases(void **state) {
  (void)state;
  expect_run(0, "golden make -q --preset tiny -o many.h5");
  cJSON *info = info_of("many.h5");
  assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(info, "cases")) > 25);
  cJSON_Delete(info);
}

/* The recipe that a golden stores makes it again. */
static void test_the_stored_recipe(void **state) {
  (void)state;
  size_t first_size, size;
  expect_run(0, "golden make -q --preset tiny --case rewind,gap --seed 3 -o a.h5");
  cJSON *info = info_of("a.h5");
  const char *recipe = text_in(info, "recipe");
  write_whole("r.json", recipe, strlen(recipe));
  cJSON_Delete(info);
  expect_run(0, "golden make -q --recipe r.json -o b.h5");
  char *first = read_whole("a.h5", &first_size), *again = read_whole("b.h5", &size);
  assert_int_equal(size, first_size);
  assert_memory_equal(first, again, size);
  free(first);
  free(again);
}

static void test_real_weights(void **state) {
  (void)state;
  expect_run(0, "golden make -q --weights %s --case main -o s.h5", FIXTURE_FILE("sidecar-rewind.dflash.cmf"));
  expect_run(0, "golden check s.h5");
  expect_run(0, "verify s.h5 --backend reference -q");
  expect_run(0, "golden make -q --weights %s --case main -o c.h5", FIXTURE_FILE("far-bf16-checkpoint"));
  expect_run(0, "verify c.h5 --backend reference -q");
}

/* An eps this large makes every norm zero. */
static void test_untrusted_stages(void **state) {
  (void)state;
  expect_refused("case main: 100% of context.norm is zeros", "--preset tiny --case main --set eps=1e300");
  expect_run(0, MAKE "--preset tiny --case main --set eps=1e300 --allow-untrusted");
  Program p = program("verify g.h5 --backend reference");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "not trusted (alone) context.norm");
  program_close(&p);
  expect_run(5, "verify g.h5 --backend reference -q --stage context.norm"); /* nothing else: it cannot tell */
}

static void test_what_it_prints(void **state) {
  (void)state;
  Program p = program("golden make --preset tiny --case main,cut -o g.h5");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "g.h5: 2 cases, ");
  expect_contains(&p, p.out, "\n  inputs ");
  cJSON *info = info_of("g.h5");
  expect_contains(&p, p.out, text_in(info, "inputs_hash"));
  expect_contains(&p, p.out, text_in(info, "values_hash"));
  cJSON_Delete(info);
  program_close(&p);
  p = program("golden info g.h5");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "  conv_group       8\n");
  program_close(&p);
}

static void test_checks(void **state) {
  (void)state;
  Program p = program("golden check t.h5 --recompute --threads 2");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "t.h5: inputs_hash matches, values_hash matches");
  expect_contains(&p, p.out, " 0 wrong\n");
  program_close(&p);
  p = program("golden check %s", FIXTURE_FILE("tiny-f32.h5"));
  expect_status(&p, 0);
  expect_contains(&p, p.out, "not checked (the file has none)");
  program_close(&p);
}

static void test_several_files(void **state) {
  (void)state;
  expect_error(2, "nosuch.h5: cannot open", "golden check t.h5 nosuch.h5");
  Program p = program("golden check nosuch.h5 t.h5");
  expect_status(&p, 2);
  expect_contains(&p, p.out, "t.h5: inputs_hash matches");
  program_close(&p);
  expect_error(2, "golden info needs a file", "golden info");
  expect_error(2, "golden check needs a file", "golden check");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_info_of_many_cases),
      cmocka_unit_test(test_geometries),
      cmocka_unit_test(test_recipes),
      cmocka_unit_test(test_outputs),
      cmocka_unit_test(test_a_recipe_gives_one_file),
      cmocka_unit_test(test_the_stored_recipe),
      cmocka_unit_test(test_real_weights),
      cmocka_unit_test(test_untrusted_stages),
      cmocka_unit_test(test_what_it_prints),
      cmocka_unit_test(test_checks),
      cmocka_unit_test(test_several_files),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
