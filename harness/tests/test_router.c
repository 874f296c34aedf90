#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "model/json.h"
#include "model/router.h"

/* hidden 2: block is the point (1, 0) with its second axis, chain the point (0, 1) with its second axis. In f16
 * 1 is 3c00, 0 is 0000: base64 of 00 3c 00 00 is ADwAAA==, of 00 00 00 3c AAAAPA==. */
static const char route[] = "{\"block\":{\"metric\":\"mse_unit\",\"phi_layer\":3,\"mean\":\"ADwAAA==\","
                            "\"basis\":\"AAAAPA==\",\"rank\":1},\"chain\":{\"metric\":\"mse_unit\",\"phi_layer\":4,"
                            "\"mean\":\"AAAAPA==\",\"basis\":\"AAAAPA==\",\"rank\":1}}";

static DflashStatus read_route(const char *text, int64_t hidden, DflashRouter *router, DflashError *error) {
  cJSON *object;
  assert_int_equal(dflash_json_parse(text, strlen(text), "route", &object, NULL), DFLASH_OK);
  DflashStatus status = dflash_router_from_json(object, hidden, router, error);
  cJSON_Delete(object);
  return status;
}

static void test_margin_by_hand(void **state) {
  (void)state;
  DflashRouter router;
  assert_int_equal(read_route(route, 2, &router, NULL), DFLASH_OK);
  assert_int_equal(router.block.phi_layer, 3);
  assert_int_equal(router.chain.phi_layer, 4);
  const float rows[][2] = {{2, 0}, {0, 5}, {3, 4}, {-1, 0}, {0, 0}};
  /* (x, y) at length 1: the block's error is (x - 1)^2, the chain's x^2. */
  const double margins[] = {1, -1, 0.36 - 0.16, 1 - 4, -1};
  for (size_t i = 0; i < sizeof margins / sizeof margins[0]; i++)
    assert_true(fabs(dflash_router_margin(&router, rows[i]) - margins[i]) < 1e-15);
  const float bad[2] = {NAN, 1};
  assert_true(isnan(dflash_router_margin(&router, bad)));
  dflash_router_close(&router);
  dflash_router_close(&router);
}

static void test_round_trip(void **state) {
  (void)state;
  DflashRouter router, again;
  assert_int_equal(read_route(route, 2, &router, NULL), DFLASH_OK);
  cJSON *object = dflash_router_to_json(&router);
  assert_int_equal(dflash_router_from_json(object, 2, &again, NULL), DFLASH_OK);
  char *text = cJSON_PrintUnformatted(object);
  assert_string_equal(text, route);
  free(text);
  cJSON_Delete(object);
  dflash_router_close(&again);
  dflash_router_close(&router);
}

static void refuse(const char *from, const char *to, const char *expected) {
  const char *at = strstr(route, from);
  assert_non_null(at);
  char text[512];
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - route), route, to, at + strlen(from));
  DflashRouter router;
  DflashError error = {0};
  assert_int_equal(read_route(text, 2, &router, &error), DFLASH_INVALID_DATA);
  if (strstr(error.message, expected) == NULL) fail_msg("%s", error.message);
  assert_int_equal(router.present, 0);
  assert_null(router.block.mean);
}

static void test_refusals(void **state) {
  (void)state;
  refuse("\"block\"", "\"Block\"", "block is no object");
  refuse("\"chain\"", "\"x\"", "chain is no object");
  refuse("mse_unit", "cosine", "block: metric is cosine");
  refuse("\"metric\":\"mse_unit\",", "", "block: metric is absent");
  refuse("\"phi_layer\":3,", "", "block: phi_layer");
  refuse("\"phi_layer\":3", "\"phi_layer\":-1", "block: phi_layer");
  refuse("\"rank\":1}}", "\"rank\":0}}", "chain: rank");
  refuse("\"rank\":1}}", "\"rank\":3}}", "chain: rank");
  refuse("\"rank\":1}}", "\"rank\":2}}", "chain: basis has 8 characters, expected 12");
  refuse("\"rank\":1}}", "\"rank\":0.5}}", "chain: rank");
  refuse("ADwAAA==", "ADwAAAAA", "block: mean is not base64");
  refuse("ADwAAA==", "ADwA AA=", "block: mean is not base64");
  refuse("ADwAAA==", "ADwAAA", "block: mean has 6 characters, expected 8");
  refuse("ADwAAA==", "AHwAAA==", "block: mean holds a value that is not finite");
  refuse("\"AAAAPA==\",\"rank\":1},", "7,\"rank\":1},", "block: basis has 0 characters");
}

static void test_hostile_sizes(void **state) {
  (void)state;
  const int64_t sizes[] = {-1, 0, INT64_MAX};
  DflashRouter router;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    assert_int_equal(read_route(route, sizes[i], &router, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(read_route(route, INT64_C(1) << 60, &router, NULL), DFLASH_INVALID_DATA);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_margin_by_hand),
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_hostile_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
