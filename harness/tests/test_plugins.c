/* The template declines politely, and each plug-in that is wrong on purpose is wrong in exactly its way. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tiny_model.h"

#define PLUGIN(name) DFLASH_TEST_BACKEND_FOLDER "/dflash-backend-" name ".so"

static DflashError error;

static void test_the_template_declines_every_model(void **state) {
  (void)state;
  const DflashBackend *backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-template.so");
  assert_int_equal(backend->abi, DFLASH_BACKEND_ABI);
  assert_int_equal(backend->struct_size, sizeof *backend);
  uint32_t count = 0;
  DflashDevice device = {.struct_size = sizeof device};
  assert_int_equal(backend->devices(&device, 1, &count, &error), DFLASH_OK);
  assert_int_equal(count, 1);
  const DflashGeometry geometry = tiny_geometry();
  const DflashModelDesc desc = {.struct_size = sizeof desc, .geometry = &geometry};
  assert_int_equal(backend->supports(&desc, &error), DFLASH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "template: copy me"));
  DflashModel *model = (DflashModel *)&device;
  assert_int_equal(backend->model_open(&desc, &model, &error), DFLASH_UNSUPPORTED);
  assert_null(model);
  backend->model_close(NULL);
  backend->sequence_close(NULL);
}

static void test_plugins_that_do_not_load(void **state) {
  (void)state;
  assert_int_equal(tiny_backend(PLUGIN("wrong-abi"))->abi, DFLASH_BACKEND_ABI + 1);
  assert_true(tiny_backend(PLUGIN("small-struct"))->struct_size < offsetof(DflashBackend, block_spans));
  assert_null(tiny_backend(PLUGIN("no-member"))->read_context);
  assert_null(tiny_backend(PLUGIN("no-symbol")));
}

/* ---- calls that do not come back ---- */

typedef void (*Act)(const DflashBackend *backend);

static void open_only(const DflashBackend *backend) { tiny_model(backend, tiny_geometry_minimal(), NULL); }

static void run_block(const DflashBackend *backend) {
  const DflashGeometry geometry = tiny_geometry_minimal();
  DflashModel *model = tiny_model(backend, geometry, NULL);
  tiny_block(backend, &geometry, tiny_sequence(backend, model, 0), 0, "h", 0);
}

/* The wait status of a child that acts and would exit with 0. */
static int outcome_of(const char *path, Act act) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(2);
    act(tiny_backend(path));
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

/* A sanitiser turns the signal into an exit status of its own. */
static void expect_crash(int status) {
  assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) || (WIFEXITED(status) && WEXITSTATUS(status) != 0));
}

static void test_plugins_that_crash(void **state) {
  (void)state;
  signal(SIGSEGV, SIG_DFL);
  expect_crash(outcome_of(PLUGIN("crash-open"), open_only));
  expect_crash(outcome_of(PLUGIN("crash-block"), run_block));
  assert_int_equal(outcome_of(PLUGIN("crash-block"), open_only), 0);
}

static void test_a_plugin_that_hangs(void **state) {
  (void)state;
  const int status = outcome_of(PLUGIN("hang-block"), run_block);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

/* ---- stages ---- */

typedef struct Mix {
  const DflashBackend *backend;
  DflashModel *model;
  DflashSequence *sequence;
  float *x;
  DflashGuarded out;
} Mix;

enum { ROWS = 4, WIDTH = 60 };

static void mix_open(Mix *mix, const char *path) {
  mix->backend = tiny_backend(path);
  mix->model = tiny_model(mix->backend, tiny_geometry(), NULL);
  mix->sequence = tiny_sequence(mix->backend, mix->model, 0);
  mix->x = tiny_draw("x", ROWS * WIDTH);
  assert_true(dflash_guarded_open(&mix->out, ROWS * WIDTH));
}

static void mix_close(Mix *mix) {
  dflash_guarded_close(&mix->out);
  free(mix->x);
  mix->backend->sequence_close(mix->sequence);
  mix->backend->model_close(mix->model);
}

static DflashStatus mix_run(Mix *mix, int64_t layer) {
  const DflashStageCall call = {.struct_size = sizeof call,
                                .stage = DFLASH_STAGE_ATTN_MIX,
                                .layer = layer,
                                .rows = ROWS,
                                .inputs = {mix->x, mix->x, mix->x},
                                .output = mix->out.data};
  dflash_guarded_poison(&mix->out);
  return mix->backend->stage(mix->sequence, &call, &error);
}

static int nan_count(const Mix *mix) {
  int count = 0;
  for (size_t i = 0; i < mix->out.count; i++) count += isnan(mix->out.data[i]) != 0;
  return count;
}

static void expect_clean(Mix *mix, int64_t layer) {
  assert_int_equal(mix_run(mix, layer), DFLASH_OK);
  assert_int_equal(nan_count(mix), 0);
  assert_int_equal(dflash_guarded_damage(&mix->out), 0);
}

static void test_a_plugin_that_writes_nan(void **state) {
  (void)state;
  Mix mix;
  mix_open(&mix, PLUGIN("nan-stage"));
  assert_int_equal(mix_run(&mix, 0), DFLASH_OK);
  assert_int_equal(nan_count(&mix), 1);
  assert_int_equal(dflash_guarded_unwritten(&mix.out), 0);
  expect_clean(&mix, 1);
  mix_close(&mix);
}

static void test_a_plugin_that_leaves_output_unwritten(void **state) {
  (void)state;
  Mix mix;
  mix_open(&mix, PLUGIN("unwritten-stage"));
  assert_int_equal(mix_run(&mix, 0), DFLASH_OK);
  assert_int_equal(dflash_guarded_unwritten(&mix.out), 1);
  expect_clean(&mix, 1);
  mix_close(&mix);
}

static void test_a_plugin_that_writes_past_the_end(void **state) {
  (void)state;
  Mix mix;
  mix_open(&mix, PLUGIN("overrun-stage"));
  assert_int_equal(mix_run(&mix, 0), DFLASH_OK);
  assert_int_equal(dflash_guarded_damage(&mix.out), 1);
  expect_clean(&mix, 1);
  mix_close(&mix);
}

static void test_a_plugin_that_does_not_repeat(void **state) {
  (void)state;
  Mix mix;
  float first[ROWS * WIDTH];
  mix_open(&mix, PLUGIN("unrepeatable"));
  DflashModelInfo info = {.struct_size = sizeof info};
  assert_int_equal(mix.backend->model_info(mix.model, &info, &error), DFLASH_OK);
  assert_int_equal(info.repeatable, 1);
  expect_clean(&mix, 0);
  memcpy(first, mix.out.data, sizeof first);
  expect_clean(&mix, 0);
  assert_memory_not_equal(first, mix.out.data, sizeof first);
  assert_true(fabsf(first[0] - mix.out.data[0]) < 1e-5f);
  mix_close(&mix);
}

static void test_a_plugin_that_returns_an_error(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  const DflashBackend *backend = tiny_backend(PLUGIN("error-block"));
  DflashModel *model = tiny_model(backend, g, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  const DflashBlockCall call = {.struct_size = sizeof call};
  assert_int_equal(backend->block(sequence, &call, &error), DFLASH_DEVICE_LOST);
  assert_int_equal(error.status, DFLASH_DEVICE_LOST);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_template_declines_every_model),
      cmocka_unit_test(test_plugins_that_do_not_load),
      cmocka_unit_test(test_plugins_that_crash),
      cmocka_unit_test(test_a_plugin_that_hangs),
      cmocka_unit_test(test_a_plugin_that_writes_nan),
      cmocka_unit_test(test_a_plugin_that_leaves_output_unwritten),
      cmocka_unit_test(test_a_plugin_that_writes_past_the_end),
      cmocka_unit_test(test_a_plugin_that_does_not_repeat),
      cmocka_unit_test(test_a_plugin_that_returns_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
