#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "model/checkpoint.h"

static const char config[] =
    "{\"architectures\": [\"DFlash2DraftModel\"], \"is_causal\": false, \"hidden_size\": 128, "
    "\"intermediate_size\": 256, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
    "\"head_dim\": 64, \"vocab_size\": 777, \"rms_norm_eps\": 1e-06, \"hidden_act\": \"silu\", "
    "\"sliding_window\": 64, \"layer_types\": [\"sliding_attention\", \"sliding_attention\"], "
    "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000000.0}, \"num_target_layers\": 8, "
    "\"dflash_config\": {\"block_size\": 8, \"conv_kernel_size\": 3, \"conv_group_size\": 16, "
    "\"target_layer_ids\": [1, 3, 5], \"mask_token_id\": 776, \"selector_rank\": 9, \"selector_top_k\": 4}}";

/* The configuration with one text in place of another. */
static DflashStatus read_edited(const char *from, const char *to, DflashGeometry *geometry, DflashError *error) {
  const char *at = strstr(config, from);
  assert_non_null(at);
  DflashText text = {0};
  dflash_text_bytes(&text, config, (size_t)(at - config));
  dflash_text_append(&text, "%s%s", to, at + strlen(from));
  DflashStatus status = dflash_checkpoint_config(text.data, text.size, geometry, error);
  dflash_text_free(&text);
  return status;
}

static DflashGeometry accept(const char *from, const char *to) {
  DflashGeometry geometry;
  DflashError error = {0};
  if (read_edited(from, to, &geometry, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return geometry;
}

static void refuse(const char *from, const char *to, const char *expected) {
  DflashGeometry geometry;
  DflashError error = {0};
  DflashStatus status = read_edited(from, to, &geometry, &error);
  if (status != DFLASH_INVALID_DATA || strstr(error.message, expected) == NULL)
    fail_msg("status %d, \"%s\", expected \"%s\"", status, error.message, expected);
  assert_memory_equal(error.message, "config.json", 11);
}

static void test_every_field(void **state) {
  (void)state;
  DflashGeometry g = accept("", "");
  assert_int_equal(g.hidden, 128);
  assert_int_equal(g.intermediate, 256);
  assert_int_equal(g.layers, 2);
  assert_int_equal(g.heads, 2);
  assert_int_equal(g.kv_heads, 1);
  assert_int_equal(g.head_dim, 64);
  assert_int_equal(g.vocab, 777);
  assert_int_equal(g.block, 8);
  assert_int_equal(g.mask_token, 776);
  assert_int_equal(g.conv_group, 16);
  assert_int_equal(g.conv_kernel, 3);
  assert_int_equal(g.selector_rank, 9);
  assert_int_equal(g.selector_top, 4);
  assert_int_equal(g.target_layers, 8);
  assert_int_equal(g.window, 64);
  assert_int_equal(g.windows.count, 0);
  assert_int_equal(g.no_rope.count, 0);
  assert_int_equal(g.taps.count, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(g.taps.at[i], 2 * i + 1);
  assert_true(g.rope_theta == 1e6);
  assert_true(g.eps == 1e-6);
}

static void test_every_key_is_required(void **state) {
  (void)state;
  const char *keys[] = {"architectures",       "hidden_size",         "intermediate_size", "num_hidden_layers",
                        "num_attention_heads", "num_key_value_heads", "head_dim",          "vocab_size",
                        "rms_norm_eps",        "layer_types",         "rope_theta",        "num_target_layers",
                        "block_size",          "conv_kernel_size",    "conv_group_size",   "target_layer_ids",
                        "mask_token_id",       "selector_rank",       "selector_top_k",    "sliding_window"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    char from[64], to[64];
    snprintf(from, sizeof from, "\"%s\":", keys[i]);
    snprintf(to, sizeof to, "\"x_%s\":", keys[i]);
    refuse(from, to, keys[i]);
  }
}

static void test_layer_types(void **state) {
  (void)state;
  const char both[] = "[\"sliding_attention\", \"sliding_attention\"]";
  DflashGeometry g = accept(both, "[\"full_attention\", \"full_attention\"]");
  assert_int_equal(g.window, 0);
  assert_int_equal(g.windows.count, 0);
  g = accept(both, "[\"sliding_attention\", \"full_attention\"]");
  assert_int_equal(g.windows.count, 2);
  assert_int_equal(g.windows.at[0], 64);
  assert_int_equal(g.windows.at[1], 0);
  g = accept("64, \"layer_types\": [\"sliding_attention\", \"sliding_attention\"]",
             "null, \"use_sliding_window\": false, \"layer_types\": [\"full_attention\", \"full_attention\"]");
  assert_int_equal(g.window, 0);
  g = accept("\"sliding_window\": 64", "\"sliding_window\": 64, \"use_sliding_window\": false");
  assert_int_equal(g.window, 64);
  refuse(both, "[\"sliding_attention\"]", "layer_types is no such list");
  refuse(both, "[\"sliding_attention\", \"chunked_attention\"]", "layer_types[1] is chunked_attention");
  refuse(both, "[\"sliding_attention\", 7]", "layer_types[1] is no string");
  refuse(both, "\"sliding_attention\"", "layer_types is no such list");
  refuse("\"sliding_window\": 64", "\"sliding_window\": null", "sliding_window is no positive integer");
  refuse("\"sliding_window\": 64", "\"sliding_window\": 0", "sliding_window is no positive integer");
  refuse("\"sliding_window\": 64", "\"sliding_window\": -1", "sliding_window is no positive integer");
}

static void test_dflash_config_wins(void **state) {
  (void)state;
  DflashGeometry g = accept("\"hidden_size\"", "\"block_size\": 16, \"selector_rank\": 1, \"hidden_size\"");
  assert_int_equal(g.block, 8);
  assert_int_equal(g.selector_rank, 9);
  g = accept("\"dflash_config\": {\"block_size\": 8,", "\"block_size\": 16, \"dflash_config\": {");
  assert_int_equal(g.block, 16);
  g = accept("\"dflash_config\": {", "\"dflash_config\": {\"num_target_layers\": 9, ");
  assert_int_equal(g.target_layers, 9);
}

static void test_rope(void **state) {
  (void)state;
  const char rope[] = "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000000.0}";
  DflashGeometry g = accept(rope, "\"rope_theta\": 5e5");
  assert_true(g.rope_theta == 5e5);
  g = accept(rope, "\"rope_theta\": 5e5, \"rope_scaling\": null, \"partial_rotary_factor\": 1.0");
  assert_true(g.rope_theta == 5e5);
  g = accept(rope, "\"rope_theta\": 5e5, \"rope_parameters\": {\"rope_theta\": 7e5}");
  assert_true(g.rope_theta == 7e5);
  refuse("\"default\"", "\"yarn\"", "rope_parameters.rope_type is yarn, expected default");
  refuse("\"default\"", "7", "rope_parameters.rope_type is no string");
  refuse(rope, "\"rope_theta\": 1, \"rope_scaling\": {\"type\": \"linear\"}", "rope_scaling.type is linear");
  refuse(rope, "\"rope_theta\": 1, \"rope_scaling\": 7", "rope_scaling is no object");
  refuse(rope, "\"rope_theta\": \"1\"", "rope_theta is no number");
  refuse(rope, "\"rope_theta\": 0", "rope_theta");
  refuse(rope, "\"rope_theta\": 1e999", "rope_theta");
  refuse("\"rope_type\": \"default\"", "\"partial_rotary_factor\": 0.5", "partial_rotary_factor is 0.5, expected 1");
  refuse("\"hidden_size\"", "\"partial_rotary_factor\": 0.25, \"hidden_size\"", "partial_rotary_factor is 0.25");
  refuse("\"dflash_config\": {", "\"dflash_config\": {\"partial_rotary_factor\": 0.25, ", "partial_rotary_factor");
}

static void test_other_models(void **state) {
  (void)state;
  refuse("DFlash2DraftModel", "DFlashDraftModel", "DFlash 1 checkpoint has no convolution and no selector");
  refuse("DFlash2DraftModel", "Qwen3ForCausalLM", "architectures is Qwen3ForCausalLM, expected DFlash2DraftModel");
  refuse("\"DFlash2DraftModel\"", "\"DFlash2DraftModel\", \"Other\"", "and others");
  refuse("[\"DFlash2DraftModel\"]", "[]", "architectures names none");
  refuse("[\"DFlash2DraftModel\"]", "\"DFlash2DraftModel\"", "architectures names none");
  refuse("\"conv_kernel_size\": 3, ", "", "conv_kernel_size is missing: a DFlash 1 checkpoint");
  refuse("\"selector_rank\": 9, ", "", "selector_rank is missing: a DFlash 1 checkpoint");
  refuse("\"is_causal\": false", "\"is_causal\": true", "is_causal is true, expected false");
  refuse("\"is_causal\": false", "\"is_causal\": 1", "is_causal is no boolean");
  refuse("\"is_causal\": false", "\"attention_bias\": true", "attention_bias is true, expected false");
  refuse("\"silu\"", "\"gelu\"", "hidden_act is gelu, expected silu");
  refuse("\"silu\"", "7", "hidden_act is no string");
  accept("\"is_causal\": false, ", "");
  accept("\"is_causal\": false", "\"is_causal\": null, \"attention_bias\": false");
}

static void test_values(void **state) {
  (void)state;
  refuse("\"hidden_size\": 128", "\"hidden_size\": \"128\"", "hidden_size is no integer");
  refuse("\"hidden_size\": 128", "\"hidden_size\": 128.5", "hidden_size is no integer");
  refuse("\"hidden_size\": 128", "\"hidden_size\": 1e17", "hidden_size is no integer");
  refuse("\"hidden_size\": 128", "\"hidden_size\": 0", "hidden");
  refuse("\"hidden_size\": 128", "\"hidden_size\": -128", "hidden");
  refuse("\"hidden_size\": 128", "\"hidden_size\": 9007199254740992", "overflow");
  refuse("\"block_size\": 8", "\"block_size\": 1", "block");
  refuse("\"mask_token_id\": 776", "\"mask_token_id\": 777", "mask_token");
  refuse("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 100000000", "layer_types");
  refuse("1e-06", "0", "eps");
  refuse("1e-06", "\"small\"", "rms_norm_eps is no number");
  refuse("[1, 3, 5]", "[]", "target_layer_ids is no such list");
  refuse("[1, 3, 5]", "[1, 3, 8]", "tap");
  refuse("[1, 3, 5]", "[1, 2.5]", "target_layer_ids[1] is no integer");
  refuse("[1, 3, 5]", "7", "target_layer_ids is no such list");
  DflashText ids = {0};
  for (int i = 0; i <= DFLASH_LIST_MAX; i++) dflash_text_append(&ids, "%c0", i == 0 ? '[' : ',');
  dflash_text_append(&ids, "]");
  refuse("[1, 3, 5]", ids.data, "target_layer_ids is no such list, expected a list of 1 to 256");
  dflash_text_free(&ids);
}

static void test_every_length(void **state) {
  (void)state;
  for (size_t size = 0; size < sizeof config - 1; size++) {
    DflashGeometry geometry;
    char *part = malloc(size + 1);
    memcpy(part, config, size);
    assert_int_equal(dflash_checkpoint_config(part, size, &geometry, NULL), DFLASH_INVALID_DATA);
    free(part);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_field), cmocka_unit_test(test_every_key_is_required),
      cmocka_unit_test(test_layer_types), cmocka_unit_test(test_dflash_config_wins),
      cmocka_unit_test(test_rope),        cmocka_unit_test(test_other_models),
      cmocka_unit_test(test_values),      cmocka_unit_test(test_every_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
