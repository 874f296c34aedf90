/* The steps by which a failing recipe is made smaller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/cases.h"
#include "golden/recipe.h"
#include "run/sweep_parts.h"

static DflashRecipe draw(uint64_t index) {
  DflashRecipe recipe;
  memset(&recipe, 0, sizeof recipe);
  dflash_sweep_draw(3, index, &dflash_sweep_limits, &recipe);
  return recipe;
}

static void expect_resolves(const DflashRecipe *recipe) {
  DflashRecipe resolved;
  char *cases;
  DflashError error = {0};
  if (dflash_recipe_resolve(recipe, &resolved, &cases, &error) != DFLASH_OK) fail_msg("%s", error.message);
  free(cases);
}

/* Takes every step that is possible, over and over: the bound is the number of steps that a shrink may try. */
static int64_t take_all(DflashRecipe *recipe) {
  DflashRecipe smaller;
  int64_t taken = 0, before = -1;
  while (taken != before) {
    before = taken;
    int what;
    for (int64_t step = 0; (what = dflash_sweep_reduce(recipe, step, &smaller)) >= 0; step += what == 0) {
      if (what == 0) continue;
      memcpy(recipe, &smaller, sizeof smaller);
      if (taken++ > 1000) fail_msg("no end of smaller recipes");
    }
  }
  return taken;
}

static void every_step_gives_a_recipe(void **state) {
  (void)state;
  int64_t possible = 0;
  for (uint64_t i = 0; i < 40; i++) {
    DflashRecipe recipe = draw(i), smaller;
    int what;
    for (int64_t step = 0; (what = dflash_sweep_reduce(&recipe, step, &smaller)) >= 0; step++) {
      if (what == 0) continue;
      possible++;
      expect_resolves(&smaller);
      assert_true(smaller.seed == recipe.seed);
      assert_memory_not_equal(&smaller, &recipe, sizeof recipe);
    }
  }
  assert_true(possible > 40 * 30);
}

/* Nothing is left that could be smaller. */
static void all_steps_lead_to_the_smallest(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 40; i++) {
    DflashRecipe r = draw(i);
    assert_true(take_all(&r) > 5);
    const DflashGeometry *g = &r.geometry;
    assert_true(g->hidden == 1 && g->intermediate == 1 && g->layers == 1 && g->heads == 1 && g->kv_heads == 1);
    assert_true(g->head_dim == 2 && g->vocab == 2 && g->block == 2 && g->conv_kernel == 1 && g->taps.count == 1);
    assert_true(g->windows.count == 0 && g->no_rope.count == 0 && g->window == 0);
    assert_true(r.plan_count == 1 && r.plans[0].op_count == 0 && r.plans[0].rows == 2 && r.plans[0].n_draft == 1);
    assert_true(r.plans[0].anchor_pos == 0 && r.plans[0].flags == 0 && r.stress == 0);
    assert_string_equal(r.storage, "f32");
  }
}

/* Each kind of reduction by itself: what is asked for is gone, the rest stays. */
static void lists_keep_their_places(void **state) {
  (void)state;
  DflashRecipe r = draw(0), smaller;
  r.geometry.layers = 3;
  r.geometry.windows = (DflashList){3, {5, 0, 9}};
  r.geometry.no_rope = (DflashList){2, {0, 2}};
  int found = 0, what;
  for (int64_t step = 0; (what = dflash_sweep_reduce(&r, step, &smaller)) >= 0; step++) {
    if (what == 0 || smaller.geometry.layers != 2 || smaller.geometry.windows.at[1] != 9) continue;
    if (smaller.geometry.windows.at[0] == 5) { /* layer 1 is gone */
      assert_true(smaller.geometry.no_rope.count == 2 && smaller.geometry.no_rope.at[1] == 1);
      found |= 1;
    } else { /* layer 0 is gone */
      assert_true(smaller.geometry.no_rope.count == 1 && smaller.geometry.no_rope.at[0] == 1);
      found |= 2;
    }
    assert_int_equal(smaller.geometry.windows.count, 2);
  }
  assert_int_equal(found, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_step_gives_a_recipe),
      cmocka_unit_test(all_steps_lead_to_the_smallest),
      cmocka_unit_test(lists_keep_their_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
