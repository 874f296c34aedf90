#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "model/geometry.h"

static DflashGeometry tiny(void) {
  for (size_t i = 0; i < dflash_preset_count(); i++)
    if (strcmp(dflash_preset(i)->name, "tiny") == 0) return dflash_preset(i)->geometry;
  fail();
  return (DflashGeometry){0};
}

typedef struct Change {
  const char *name, *value;
} Change;

typedef struct Refusal {
  Change changes[3];
  const char *parts[3]; /* of the message */
} Refusal;

static void apply(DflashGeometry *geometry, const Change *change) {
  DflashError error = {0};
  if (change->name && dflash_geometry_set(geometry, change->name, change->value, &error) != DFLASH_OK)
    fail_msg("%s", error.message);
}

static void expect_refusal(const Refusal *refusal) {
  DflashGeometry geometry = tiny();
  for (int i = 0; i < 3; i++) apply(&geometry, &refusal->changes[i]);
  DflashError error = {0};
  assert_int_equal(dflash_geometry_check(&geometry, &error), DFLASH_INVALID_DATA);
  assert_int_equal(error.status, DFLASH_INVALID_DATA);
  for (int i = 0; i < 3 && refusal->parts[i]; i++)
    if (!strstr(error.message, refusal->parts[i])) fail_msg("'%s' lacks '%s'", error.message, refusal->parts[i]);
  assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_INVALID_DATA);
}

static void every_size_must_be_positive(void **state) {
  (void)state;
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    if (field->kind != DFLASH_FIELD_I64) continue;
    int may_be_zero = strcmp(field->name, "window") == 0 || strcmp(field->name, "mask_token") == 0;
    DflashGeometry geometry = tiny();
    apply(&geometry, &(Change){field->name, "0"});
    DflashStatus status = dflash_geometry_check(&geometry, NULL);
    assert_int_equal(status, may_be_zero ? DFLASH_OK : DFLASH_INVALID_DATA);
    expect_refusal(&(Refusal){{{field->name, "-1"}}, {field->name, " is -1; valid: at least "}});
  }
}

static void relations_are_refused_by_name(void **state) {
  (void)state;
  static const Refusal refusals[] = {
      {{{"block", "1"}}, {"block is 1", "at least 2"}},
      {{{"taps", ""}}, {"taps is empty"}},
      {{{"taps", "1,4"}}, {"taps[1] is 4", "target_layers (4)"}},
      {{{"taps", "-1"}}, {"taps[0] is -1"}},
      {{{"kv_heads", "3"}}, {"heads is 4", "kv_heads (3)"}},
      {{{"heads", "1"}}, {"heads is 1", "kv_heads (2)"}},
      {{{"head_dim", "15"}}, {"head_dim is 15", "even"}},
      {{{"conv_group", "7"}}, {"hidden is 64", "conv_group (7)"}},
      {{{"windows", "8"}}, {"windows has 1", "(2)"}},
      {{{"windows", "8,8,8"}}, {"windows has 3"}},
      {{{"windows", "8,-1"}}, {"windows[1] is -1"}},
      {{{"no_rope", "2"}}, {"no_rope[0] is 2", "layers (2)"}},
      {{{"no_rope", "0,-5"}}, {"no_rope[1] is -5"}},
      {{{"mask_token", "509"}}, {"mask_token is 509", "vocab (509)"}},
      {{{"selector_top", "510"}}, {"selector_top is 510", "vocab (509)"}},
      {{{"layers", "257"}}, {"layers is 257", "256"}},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) expect_refusal(&refusals[i]);
}

static void reals_must_be_finite_and_positive(void **state) {
  (void)state;
  const double values[] = {0, -1, NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    DflashGeometry geometry = tiny();
    DflashError error = {0};
    geometry.eps = values[i];
    assert_int_equal(dflash_geometry_check(&geometry, &error), DFLASH_INVALID_DATA);
    assert_non_null(strstr(error.message, "eps is "));
    geometry = tiny();
    geometry.rope_theta = values[i];
    assert_int_equal(dflash_geometry_check(&geometry, &error), DFLASH_INVALID_DATA);
    assert_non_null(strstr(error.message, "rope_theta is "));
  }
  DflashGeometry geometry = tiny();
  geometry.eps = DBL_TRUE_MIN;
  assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_OK);
  geometry.rope_theta = 1e-300; /* its last frequency is about 1e262 */
  assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_INVALID_DATA);
  geometry.rope_theta = 1e-30;
  assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_OK);
}

static void list_counts_are_checked(void **state) {
  (void)state;
  const int64_t counts[] = {-1, DFLASH_LIST_MAX + 1, INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    DflashGeometry geometry = tiny();
    geometry.taps.count = counts[i];
    assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_INVALID_DATA);
    geometry = tiny();
    geometry.windows.count = counts[i];
    assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_INVALID_DATA);
    geometry = tiny();
    geometry.no_rope.count = counts[i];
    assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_INVALID_DATA);
  }
}

static void overflowing_products_are_refused(void **state) {
  (void)state;
  static const Refusal refusals[] = {
      {{{"intermediate", "36028797018963968"}},
       {"mlp.gate_proj.weight", "intermediate 36028797018963968", "hidden 64"}},
      {{{"intermediate", "9223372036854775807"}}, {"overflows", "intermediate 9223372036854775807"}},
      {{{"heads", "9223372036854775806"}}, {"heads 9223372036854775806", "head_dim 16"}},
      {{{"head_dim", "9223372036854775806"}}, {"head_dim 9223372036854775806"}},
      {{{"heads", "4611686018427387904"}, {"kv_heads", "4611686018427387904"}}, {"overflows", "head_dim 16"}},
      {{{"hidden", "9223372036854775800"}}, {"hidden 9223372036854775800"}},
      {{{"vocab", "9223372036854775807"}}, {"vocab 9223372036854775807"}},
      {{{"conv_kernel", "9223372036854775807"}}, {"conv_kernel 9223372036854775807"}},
      {{{"conv_kernel", "36028797018963968"}}, {"conv_kernel 36028797018963968"}},
      {{{"selector_rank", "9223372036854775807"}}, {"selector_rank 9223372036854775807"}},
      {{{"block", "9223372036854775807"}}, {"block 9223372036854775807", "hidden 64"}},
      {{{"layers", "256"}, {"intermediate", "140737488355328"}}, {"the sum of all weights", "layers 256"}},
      {{{"layers", "256"}, {"block", "281474976710656"}, {"mask_token", "0"}}, {"the sum of all stages", "layers 256"}},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) expect_refusal(&refusals[i]);
}

static void large_but_fitting_sizes_pass(void **state) {
  (void)state;
  DflashGeometry geometry = tiny();
  geometry.layers = 256;
  geometry.intermediate = (int64_t)1 << 40;
  geometry.window = INT64_MAX;
  assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_OK);
  geometry.block = (int64_t)1 << 10;
  assert_int_equal(dflash_geometry_check(&geometry, NULL), DFLASH_OK);
}

static void fields_are_set_from_text(void **state) {
  (void)state;
  DflashGeometry geometry = tiny();
  assert_int_equal(dflash_geometry_set(&geometry, "hidden", "5120", NULL), DFLASH_OK);
  assert_int_equal(dflash_geometry_set(&geometry, "rope_theta", "1e7", NULL), DFLASH_OK);
  assert_int_equal(dflash_geometry_set(&geometry, "taps", "5,19,33", NULL), DFLASH_OK);
  assert_int_equal(dflash_geometry_set(&geometry, "windows", "0", NULL), DFLASH_OK);
  assert_true(geometry.hidden == 5120 && geometry.rope_theta == 1e7);
  assert_true(geometry.taps.count == 3 && geometry.taps.at[0] == 5 && geometry.taps.at[2] == 33);
  assert_true(geometry.windows.count == 1 && geometry.windows.at[0] == 0);
  assert_int_equal(dflash_geometry_set(&geometry, "windows", "", NULL), DFLASH_OK);
  assert_true(geometry.windows.count == 0);
}

static void unknown_fields_list_the_known(void **state) {
  (void)state;
  DflashGeometry geometry = tiny();
  DflashError error = {0};
  assert_int_equal(dflash_geometry_set(&geometry, "hiden", "64", &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'hiden'"));
  for (size_t i = 0; i < dflash_geometry_field_count(); i++)
    assert_non_null(strstr(error.message, dflash_geometry_field(i)->name));
  assert_null(dflash_geometry_field(dflash_geometry_field_count()));
}

static void bad_values_say_what_is_expected(void **state) {
  (void)state;
  static const struct {
    const char *name, *value, *expected;
  } cases[] = {{"hidden", "12x", "for example 5120"},
               {"hidden", "", "for example 5120"},
               {"hidden", "1.5", "for example 5120"},
               {"hidden", "9223372036854775808", "whole number"},
               {"eps", "small", "for example 1e-6"},
               {"eps", "", "a number"},
               {"taps", "1,,2", "5,19,33"},
               {"taps", "1,2,", "5,19,33"},
               {"taps", ",", "5,19,33"},
               {"taps", "1;2", "5,19,33"},
               {"taps", "1,99999999999999999999999999999999999999", "5,19,33"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    DflashGeometry geometry = tiny(), before = geometry;
    DflashError error = {0};
    assert_int_equal(dflash_geometry_set(&geometry, cases[i].name, cases[i].value, &error), DFLASH_INVALID_ARGUMENT);
    if (!strstr(error.message, cases[i].expected)) fail_msg("%s", error.message);
    assert_non_null(strstr(error.message, cases[i].name));
    assert_true(dflash_geometry_equal(&geometry, &before));
  }
}

static void a_list_takes_256_entries(void **state) {
  (void)state;
  char text[2 * DFLASH_LIST_MAX + 2];
  for (int i = 0; i <= DFLASH_LIST_MAX; i++) memcpy(text + 2 * i, "0,", 2);
  text[2 * DFLASH_LIST_MAX - 1] = '\0';
  DflashGeometry geometry = tiny();
  assert_int_equal(dflash_geometry_set(&geometry, "taps", text, NULL), DFLASH_OK);
  assert_int_equal(geometry.taps.count, DFLASH_LIST_MAX);
  text[2 * DFLASH_LIST_MAX - 1] = ',';
  text[2 * DFLASH_LIST_MAX + 1] = '\0';
  assert_int_equal(dflash_geometry_set(&geometry, "taps", text, NULL), DFLASH_INVALID_ARGUMENT);
}

static void equality_sees_every_field(void **state) {
  (void)state;
  DflashGeometry geometry = tiny(), other;
  assert_true(dflash_geometry_equal(&geometry, &geometry));
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    other = geometry;
    apply(&other, &(Change){dflash_geometry_field(i)->name, "1"});
    assert_false(dflash_geometry_equal(&geometry, &other));
  }
  other = geometry;
  other.taps.at[1] = 3;
  assert_false(dflash_geometry_equal(&geometry, &other));
  other = geometry;
  other.taps.at[other.taps.count] = 99; /* past the count */
  assert_true(dflash_geometry_equal(&geometry, &other));
}

static void frequencies_are_rounded_once(void **state) {
  (void)state;
  for (size_t p = 0; p < dflash_preset_count(); p++) {
    const DflashGeometry *geometry = &dflash_preset(p)->geometry;
    float inv_freq[128];
    dflash_geometry_inv_freq(geometry, inv_freq);
    assert_true(inv_freq[0] == 1.0f);
    for (int64_t i = 0; i < geometry->head_dim / 2; i++) {
      long double exponent = -2.0L * i / geometry->head_dim;
      assert_true(inv_freq[i] == (float)powl((long double)geometry->rope_theta, exponent));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_must_be_positive),       cmocka_unit_test(relations_are_refused_by_name),
      cmocka_unit_test(reals_must_be_finite_and_positive), cmocka_unit_test(list_counts_are_checked),
      cmocka_unit_test(overflowing_products_are_refused),  cmocka_unit_test(large_but_fitting_sizes_pass),
      cmocka_unit_test(fields_are_set_from_text),          cmocka_unit_test(unknown_fields_list_the_known),
      cmocka_unit_test(bad_values_say_what_is_expected),   cmocka_unit_test(a_list_takes_256_entries),
      cmocka_unit_test(equality_sees_every_field),         cmocka_unit_test(frequencies_are_rounded_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
