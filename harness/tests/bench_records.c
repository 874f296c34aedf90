#include "bench_records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[BENCH_GROUPS] = {"qkv", "attention", "head"};
static const double shares[BENCH_GROUPS] = {0.3, 0.5, 0.2};

#define HEAD "{\"schema\":\"dflash-record\",\"version\":1,"

static const char *or_else(const char *text, const char *usual) { return text != NULL ? text : usual; }

static void put_shared(FILE *out, const BenchFile *f) {
  fprintf(out,
          "\"file\":\"dir/a.h5\",\"case\":\"main\",\"backend\":\"reference\",\"device\":\"%s\",\"profile\":\"%s\","
          "\"inputs_hash\":\"%s\"",
          or_else(f->device, "cpu"), or_else(f->profile, "exact"), or_else(f->golden, "g"));
}

static void put_groups(FILE *out, const BenchFile *f, double block) {
  fprintf(out, ",\"groups\":[");
  for (int g = 0; g < BENCH_GROUPS; g++)
    fprintf(out, "%s{\"group\":\"%s\",\"ns\":%.3f}", g > 0 ? "," : "", names[g],
            block * shares[g] * (f->slow == g + 1 ? f->slow_by : 1));
  fprintf(out, "],\"stages\":[");
  for (int g = 0; g < BENCH_GROUPS; g++)
    fprintf(out, "%s{\"stage\":\"part.%s\",\"layer\":0,\"group\":\"%s\",\"time\":{\"median\":%.3f}}", g > 0 ? "," : "",
            names[g], names[g], block * shares[g] * (f->slow == g + 1 ? f->slow_by : 1));
  fprintf(out, "]");
}

static int minute_of(const BenchFile *f, int process) { return f->minute + process * (f->step > 0 ? f->step : 2); }

static void put_bench(FILE *out, const BenchFile *f, int process) {
  const int n = f->samples > 0 ? f->samples : 32, minute = minute_of(f, process);
  const double spread = 1 + 0.002 * ((process * 7 % 11) / 5.0 - 1), block = f->block * spread;
  const double slow = f->slow > 0 ? block * shares[f->slow - 1] * (f->slow_by - 1) : 0;
  fprintf(out, HEAD "\"type\":\"bench\",");
  put_shared(out, f);
  fprintf(out, ",\"what\":\"block\",\"cold\":%s,\"cache_hot\":false,\"block\":{\"device\":{\"median\":%.3f}}",
          f->cold ? "true" : "false", block + slow);
  if (f->side != NULL) fprintf(out, ",\"side\":\"%s\",\"pair\":%d", f->side, process);
  put_groups(out, f, block);
  fprintf(out, ",\"samples\":[");
  for (int i = 0; i < n; i++) fprintf(out, "%s%.3f", i > 0 ? "," : "", (block + slow) * (1 + 0.001 * (i * 5 % 7)));
  fprintf(out, "],\"state_before\":{},\"state_after\":{\"throttle\":%d}", f->throttled ? 0x20 : 1);
  fprintf(out,
          ",\"environment\":{\"time\":\"2026-11-30T%02d:%02d:00Z\",\"cpu\":\"c\",\"cpus_allowed\":2,"
          "\"load\":[%g,1,1],\"revision\":\"r\"}}\n",
          minute / 60, minute % 60, f->load);
}

static void put_process(FILE *out, const BenchFile *f, int process) {
  const char *outcome = or_else(f->outcome, "pass");
  const int minute = minute_of(f, process);
  fprintf(out, HEAD "\"type\":\"run\",\"command\":\"dflash-harness bench a.h5\",\"id\":\"%d %s %g\",", minute,
          or_else(f->side, ""), f->block);
  fprintf(out, "\"environment\":{\"time\":\"2026-11-30T%02d:%02d:00Z\",\"revision\":\"r\"}}\n", minute / 60,
          minute % 60);
  fprintf(out, HEAD "\"type\":\"model\",\"device_name\":\"d\",\"driver\":\"1\"}\n");
  put_bench(out, f, process);
  fprintf(out, HEAD "\"type\":\"case\",");
  put_shared(out, f);
  fprintf(out,
          ",\"modes\":\"bench\",\"outcome\":\"%s\",\"message\":\"why\",\"settings\":\"backend_file=1 values=v\"}\n",
          outcome);
  fprintf(out, HEAD "\"type\":\"summary\",\"exit\":%d}\n", strcmp(outcome, "pass") == 0 ? 0 : 5);
}

static void put_file(const char *path, const char *mode, const BenchFile *f) {
  FILE *out = fopen(path, mode);
  assert_non_null(out);
  for (int process = 0; process < f->processes; process++) put_process(out, f, process);
  assert_int_equal(fclose(out), 0);
}

void write_bench_file(const char *path, const BenchFile *f) { put_file(path, "w", f); }
void append_bench_file(const char *path, const BenchFile *f) { put_file(path, "a", f); }
