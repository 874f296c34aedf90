/* Every committed recipe: made, then verified in the profile that is the first argument, with the validation layers
 * listening. */
#include <glob.h>

#include "gate.h"

static const char *profile = "exact";

/* Profile i8 is declined where no weight is stored as it wants. */
static int verify_recipe(const char *recipe) {
  const bool may_decline = strcmp(profile, "i8") == 0;
  expect_run(0, "golden make -q --recipe %s -o t.h5", recipe);
  Program p = program("verify t.h5 -q --backend vulkan --backend-path " DFLASH_BACKEND_FOLDER
                      " --option validation=on --profile %s%s",
                      profile, may_decline ? " --allow-missing" : "");
  const bool declined = may_decline && p.status == 77;
  if (declined) expect_contains(&p, p.err, "none of the weights is q4tp");
  if (!declined && p.status != 0) print_error("%s:\n", recipe);
  if (!declined) expect_status(&p, 0);
  program_close(&p);
  return !declined;
}

static void test_recipes(void **state) {
  (void)state;
  glob_t found;
  size_t ran = 0;
  assert_int_equal(glob(DFLASH_RECIPE_FOLDER "/*.json", 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++) ran += (size_t)verify_recipe(found.gl_pathv[i]);
  assert_true(found.gl_pathc >= 36);
  assert_true(ran >= (strcmp(profile, "i8") == 0 ? 18 : found.gl_pathc));
  globfree(&found);
}

int main(int argc, char **argv) {
  if (argc > 1) profile = argv[1];
  gate_need_device();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_recipes)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
