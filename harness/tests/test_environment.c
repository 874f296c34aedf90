#include "records.h"
#include "store/environment.h"

static void every_member_is_there(void **state) {
  (void)state;
  setenv("OPENBLAS_NUM_THREADS", "3", 1);
  setenv("OMP_DISPLAY", "a=b", 1);
  setenv("SECRET", "no", 1);
  cJSON *environment = dflash_environment();
  static const char *const texts[] = {"time",       "version", "revision", "dirty",    "compiler",       "flags",
                                      "build_type", "kernel",  "cpu",      "governor", "virtual_machine"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(environment, texts[i]));
    if (!text) fail_msg("no %s", texts[i]);
  }
  assert_int_equal(strlen(cJSON_GetObjectItem(environment, "time")->valuestring), strlen("2026-01-02T03:04:05Z"));
  assert_true(cJSON_GetObjectItem(environment, "cpus_allowed")->valuedouble >= 1);
  assert_non_null(cJSON_GetObjectItem(environment, "cpu_mhz"));
  double total = cJSON_GetObjectItem(environment, "memory_total_bytes")->valuedouble;
  double available = cJSON_GetObjectItem(environment, "memory_available_bytes")->valuedouble;
  assert_true(total > 1 << 20 && available > 0 && available <= total);
  assert_true(cJSON_IsArray(cJSON_GetObjectItem(environment, "load")));
  const cJSON *variables = cJSON_GetObjectItem(environment, "variables");
  assert_string_equal(cJSON_GetObjectItem(variables, "OPENBLAS_NUM_THREADS")->valuestring, "3");
  assert_string_equal(cJSON_GetObjectItem(variables, "OMP_DISPLAY")->valuestring, "a=b");
  assert_null(cJSON_GetObjectItem(variables, "SECRET"));
  cJSON_Delete(environment);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_member_is_there)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
