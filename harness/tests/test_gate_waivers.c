/* Files of waivers: what they must be, and whom they excuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/gate_waivers.h"

#define GOOD "\"id\":\"w\",\"device\":\"cpu\",\"until\":\"2027-01-31\",\"why\":\"known\""

static DflashStatus parse(const char *text, DflashWaivers *waivers, DflashError *error) {
  return dflash_waivers_parse(text, strlen(text), "w.json", waivers, error);
}

static void expect_refused(const char *text, const char *part) {
  DflashWaivers waivers;
  DflashError error = {0};
  DflashStatus status = parse(text, &waivers, &error);
  if (status != DFLASH_INVALID_DATA || strstr(error.message, part) == NULL)
    fail_msg("%s: status %d, \"%s\" lacks \"%s\"", text, status, error.message, part);
  assert_non_null(strstr(error.message, "w.json"));
  dflash_waivers_close(&waivers);
}

static void malformed_files_are_refused(void **state) {
  (void)state;
  expect_refused("", "empty");
  expect_refused("[]", "not one JSON object");
  expect_refused("{}", "{\"waivers\": [...]}");
  expect_refused("{\"waivers\":{}}", "{\"waivers\": [...]}");
  expect_refused("{\"waivers\":[],\"more\":1}", "nothing else");
  expect_refused("{\"waivers\":[3]}", "is no object");
  expect_refused("{\"waivers\":[{}]}", "waiver 1 (no id) needs id, device, until and why");
  expect_refused("{\"waivers\":[{" GOOD ",\"score\":3}]}", "waiver 1 (w) needs a case or a stage");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"*\"}]}", "needs a score or a time_share");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"*\",\"score\":\"3\"}]}", "is no number");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"*\",\"score\":1}]}", "not above 1");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"*\",\"time_share\":-1}]}", "outside 0 to 10");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"\",\"score\":3}]}", "empty or none");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"*\",\"score\":3,\"scores\":3}]}", "not known");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"*\",\"score\":3,\"score\":4}]}", "twice");
  expect_refused("{\"waivers\":[{" GOOD ",\"case\":\"*\",\"score\":3},{" GOOD ",\"case\":\"x\",\"score\":3}]}",
                 "waiver 2 (w) has an id given twice");
}

static void days(void **state) {
  (void)state;
  const char *const good[] = {"2026-12-31", "2028-02-29", "2000-02-29", "2026-01-01"};
  const char *const bad[] = {"2026-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-31",
                             "2026-4-01",  "20260401",   "tomorrow",   "2026-01-00", ""};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(dflash_day_valid(good[i]));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(dflash_day_valid(bad[i]));
  assert_false(dflash_day_valid(NULL));
}

static DflashFault fault(double score, double time_share) {
  return (DflashFault){"cpu", "EPYC", "main", "attn.mix", "attn.mix/1", score, time_share};
}

static void worse_than_excused_fails(void **state) {
  (void)state;
  DflashWaivers w;
  DflashError error = {0};
  const DflashWaiver *expired = NULL;
  assert_int_equal(
      parse("{\"waivers\":[{" GOOD ",\"stage\":\"attn.mix/1\",\"score\":3,\"time_share\":0.1}]}", &w, &error),
      DFLASH_OK);
  DflashFault f = fault(3, NAN);
  assert_non_null(dflash_waivers_find(&w, &f, "2027-01-31", &expired));
  f.score = 3.01;
  assert_null(dflash_waivers_find(&w, &f, "2027-01-31", &expired));
  f = fault(NAN, 0.1);
  assert_non_null(dflash_waivers_find(&w, &f, "2026-01-01", &expired));
  f.time_share = 0.11;
  assert_null(dflash_waivers_find(&w, &f, "2026-01-01", &expired));
  assert_null(expired);
  f = fault(2, NAN);
  assert_null(dflash_waivers_find(&w, &f, "2027-02-01", &expired)); /* the day after */
  assert_ptr_equal(expired, &w.at[0]);
  f.label = "attn.mix/2";
  expired = NULL;
  assert_null(dflash_waivers_find(&w, &f, "2026-01-01", &expired));
  f = fault(2, NAN);
  f.device = f.device_name = "gpu";
  assert_null(dflash_waivers_find(&w, &f, "2026-01-01", &expired));
  dflash_waivers_close(&w);
}

/* One that says nothing about times excuses none. */
static void each_measure_for_itself(void **state) {
  (void)state;
  DflashWaivers w;
  const DflashWaiver *expired = NULL;
  assert_int_equal(parse("{\"waivers\":[{" GOOD ",\"case\":\"ma*\",\"score\":3}]}", &w, NULL), DFLASH_OK);
  DflashFault f = fault(NAN, 0.001);
  assert_null(dflash_waivers_find(&w, &f, "2026-01-01", &expired));
  f = fault(2, NAN);
  assert_non_null(dflash_waivers_find(&w, &f, "2026-01-01", &expired));
  f.case_name = "other";
  assert_null(dflash_waivers_find(&w, &f, "2026-01-01", &expired));
  dflash_waivers_close(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(malformed_files_are_refused),
      cmocka_unit_test(days),
      cmocka_unit_test(worse_than_excused_fails),
      cmocka_unit_test(each_measure_for_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
