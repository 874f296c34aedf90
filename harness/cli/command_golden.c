#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "golden/check.h"
#include "golden/generate.h"
#include "run/report.h"

static const char make_usage[] =
    "usage: dflash-harness golden make (--preset NAME | --weights PLACE | --recipe FILE) -o FILE [OPTIONS]\n\n"
    "Makes a golden file: draws weights and inputs from a seed, or takes a real sidecar or checkpoint, computes every\n"
    "stage in float64 with its error scales, and writes one HDF5 file. The recipe is stored in it: the same recipe\n"
    "gives the same inputs on every machine. 'list presets' and 'list cases' show what there is.";

#define SETS_MAX 64

typedef struct MakeArguments {
  const char *preset, *recipe, *storage, *stress, *cases, *profiles, *weights, *head, *target_hash, *output, *seed;
  int64_t rows, n_draft, head_width, context, threads;
  int allow_untrusted, quiet;
  const char *sets[SETS_MAX];
  int set_count;
} MakeArguments;

static DflashStatus take_set(void *context, const char *value, DflashError *error) {
  MakeArguments *a = context;
  if (strchr(value, '=') == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--set: '%s' is not FIELD=VALUE", value);
  if (a->set_count == SETS_MAX)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--set: more than %d are given", SETS_MAX);
  a->sets[a->set_count++] = value;
  return DFLASH_OK;
}

static DflashStatus apply_sets(const MakeArguments *a, DflashRecipe *recipe, DflashError *error) {
  for (int i = 0; i < a->set_count; i++) {
    char name[64];
    const char *equals = strchr(a->sets[i], '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals - a->sets[i]), a->sets[i]);
    DflashStatus status = dflash_geometry_set(&recipe->geometry, name, equals + 1, error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

static DflashStatus open_recipe(const MakeArguments *a, DflashRecipe *recipe, cJSON **owner, DflashError *error) {
  int sources = (a->preset != NULL) + (a->recipe != NULL) + (a->weights != NULL);
  if (sources != 1)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "golden make needs one of --preset, --weights and --recipe");
  if (a->recipe == NULL) return dflash_recipe_open(a->preset != NULL ? a->preset : "", recipe, error);
  char *text = NULL;
  uint64_t size = 0;
  DflashStatus status = dflash_read_file(a->recipe, 1 << 20, &text, &size, error);
  if (status == DFLASH_OK && dflash_recipe_from_json(text, recipe, owner, error) != DFLASH_OK)
    status = dflash_error_prefix(error, "%s", a->recipe);
  free(text);
  return status;
}

static DflashStatus build_recipe(const MakeArguments *a, DflashRecipe *recipe, cJSON **owner, DflashError *error) {
  DflashStatus status = open_recipe(a, recipe, owner, error);
  if (status != DFLASH_OK) return status;
  if (a->weights != NULL) {
    recipe->weights_path = a->weights;
    if (a->set_count > 0 || a->storage != NULL)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                              "--set and --storage change drawn weights: they cannot go with --weights");
  }
  if (a->head != NULL) recipe->head_path = a->head;
  if (a->target_hash != NULL) recipe->target_hash = a->target_hash;
  status = dflash_argument_seed(a->seed, &recipe->seed, error);
  if (status != DFLASH_OK) return status;
  if (a->storage != NULL) snprintf(recipe->storage, sizeof recipe->storage, "%s", a->storage);
  if (a->stress != NULL && dflash_stress_parse(a->stress, &recipe->stress, error) != DFLASH_OK)
    return dflash_error_prefix(error, "--stress");
  if (a->cases != NULL) recipe->cases = a->cases;
  if (a->profiles != NULL) recipe->profiles = a->profiles;
  if (a->rows >= 0) recipe->rows = a->rows;
  if (a->n_draft >= 0) recipe->n_draft = a->n_draft;
  if (a->head_width >= 0) recipe->head_width = a->head_width;
  if (a->context >= 0) recipe->context = a->context;
  if (a->allow_untrusted) recipe->allow_untrusted = 1;
  return apply_sets(a, recipe, error);
}

static DflashStatus check_output(const MakeArguments *a, DflashError *error) {
  const char *inputs[] = {a->recipe, a->weights, a->head};
  if (a->output == NULL) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "-o FILE is missing");
  for (int i = 0; i < 3; i++)
    if (inputs[i] != NULL && dflash_same_file(inputs[i], a->output))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: is read: not written over", a->output);
  return DFLASH_OK;
}

static void progress(const char *line) { dflash_progress("%s", line); }

static int make(const MakeArguments *a) {
  DflashError error = {0};
  DflashRecipe recipe;
  DflashMakeResult result;
  cJSON *owner = NULL;
  memset(&recipe, 0, sizeof recipe);
  DflashStatus status = check_output(a, &error);
  if (status == DFLASH_OK) status = build_recipe(a, &recipe, &owner, &error);
  if (status == DFLASH_OK) status = dflash_golden_make(&recipe, a->output, (int)a->threads, progress, &result, &error);
  dflash_progress_done();
  if (status == DFLASH_OK && !a->quiet)
    printf("%s: %lld case%s, %.1f MB\n  inputs %s\n  values %s\n  scales %s\n", a->output, (long long)result.cases,
           result.cases == 1 ? "" : "s", (double)result.bytes * 1e-6, result.inputs_hash, result.values_hash,
           result.scales_hash);
  cJSON_Delete(owner);
  return status == DFLASH_OK ? DFLASH_EXIT_OK : dflash_command_fail(&error);
}

static int command_make(int argc, char **argv) {
  MakeArguments a = {.rows = -1, .n_draft = -1, .head_width = -1, .context = -1};
  const DflashArgument table[] = {
      {"preset,p", "NAME", "a geometry and its default cases", DFLASH_ARGUMENT_TEXT, &a.preset, 0},
      {"weights,w", "PLACE", "a sidecar (.dflash.cmf) or a checkpoint folder", DFLASH_ARGUMENT_TEXT, &a.weights, 0},
      {"head", "FILE", "the target that gives the head (CMF, safetensors or a folder); default: drawn",
       DFLASH_ARGUMENT_TEXT, &a.head, 0},
      {"target-hash", "HEX", "the target that the sidecar must name (its trunk_hash64)", DFLASH_ARGUMENT_TEXT,
       &a.target_hash, 0},
      {"recipe", "FILE", "a recipe as JSON, as stored in a golden", DFLASH_ARGUMENT_TEXT, &a.recipe, 0},
      {"output,o", "FILE", "the golden file to write", DFLASH_ARGUMENT_TEXT, &a.output, 0},
      {"seed", "N", "seed of all that is drawn (1)", DFLASH_ARGUMENT_TEXT, &a.seed, 0},
      {"set", "FIELD=VALUE", "change a field of the geometry; may be repeated", DFLASH_ARGUMENT_CALL, &a, take_set},
      {"storage", "S", "of drawn weights: sidecar, f32, f16, bf16 or q8_2f", DFLASH_ARGUMENT_TEXT, &a.storage, 0},
      {"stress", "NAMES", "sizes of drawn data (docs/goldens.md), joined by ','", DFLASH_ARGUMENT_TEXT, &a.stress, 0},
      {"case,c", "PATTERN", "kinds of cases, names or patterns joined by ','", DFLASH_ARGUMENT_TEXT, &a.cases, 0},
      {"rows", "N", "rows of the block", DFLASH_ARGUMENT_NUMBER, &a.rows, 0},
      {"n-draft", "N", "drafted rows", DFLASH_ARGUMENT_NUMBER, &a.n_draft, 0},
      {"head-width", "N", "rows of the head that are read (a shortlist)", DFLASH_ARGUMENT_NUMBER, &a.head_width, 0},
      {"context", "N", "context rows", DFLASH_ARGUMENT_NUMBER, &a.context, 0},
      {"profiles", "LIST", "profiles whose values stand beside the exact ones: i8", DFLASH_ARGUMENT_TEXT, &a.profiles,
       0},
      {"allow-untrusted", NULL, "also make goldens with stages that are mostly zeros", DFLASH_ARGUMENT_FLAG,
       &a.allow_untrusted, 0},
      {"threads,t", "N", "threads (all CPUs)", DFLASH_ARGUMENT_THREADS, &a.threads, 0},
      {"quiet,q", NULL, "print nothing but errors", DFLASH_ARGUMENT_FLAG, &a.quiet, 0}};
  int operands = 0, helped = 0;
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, make_usage, table, (int)(sizeof table / sizeof table[0]),
                                               &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && operands > 0)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "golden make takes no operand: '%s'", argv[1]);
  return status == DFLASH_OK ? make(&a) : dflash_command_fail(&error);
}

typedef struct ReadArguments {
  const char *path;
  int check, json, recompute;
  int64_t threads;
} ReadArguments;

/* In a child: HDF5 itself crashes or hangs on some damaged files. */
static int read_golden(void *context, FILE *out, DflashError *error) {
  const ReadArguments *a = context;
  DflashGolden *golden = NULL;
  int64_t wrong = 0;
  DflashStatus status = dflash_golden_open(a->path, a->check, &golden, error);
  if (status == DFLASH_OK)
    status = a->check ? dflash_golden_check(golden, a->path, a->recompute, (int)a->threads, out, &wrong, error)
                      : dflash_golden_info(golden, a->path, a->json, out, error);
  dflash_golden_close(golden);
  if (status != DFLASH_OK) return dflash_status_exit(status);
  return wrong > 0 ? DFLASH_EXIT_WRONG : DFLASH_EXIT_OK;
}

static int command_read(int argc, char **argv, int check) {
  ReadArguments a = {.check = check};
  double timeout_s = 900;
  const char *usage = check ? "usage: dflash-harness golden check FILE... [--recompute]\n\n"
                              "Checks structure, values, error scales and hashes; with --recompute every stage again\n"
                              "in float64, and every error scale that the file has."
                            : "usage: dflash-harness golden info FILE... [--json]\n\n"
                              "Shows geometry, weights, cases and where they come from.";
  const DflashArgument check_rows[] = {{"timeout", "TIME", "give up on a file after this long without output (900s)",
                                        DFLASH_ARGUMENT_SECONDS, &timeout_s, 0},
                                       {"threads,t", "N", "threads (all CPUs)", DFLASH_ARGUMENT_THREADS, &a.threads, 0},
                                       {"recompute", NULL, "compute every stage again from the file's own inputs",
                                        DFLASH_ARGUMENT_FLAG, &a.recompute, 0}};
  const DflashArgument info_rows[] = {check_rows[0],
                                      {"json", NULL, "print one JSON object", DFLASH_ARGUMENT_FLAG, &a.json, 0}};
  int operands = 0, helped = 0, worst = DFLASH_EXIT_OK;
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, check ? check_rows : info_rows, check ? 3 : 2,
                                               &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && operands < 1)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "golden %s needs a file", argv[0]);
  if (status != DFLASH_OK) return dflash_command_fail(&error);
  for (int i = 1; i <= operands; i++) {
    a.path = argv[i];
    char what[1200];
    snprintf(what, sizeof what, "%s: not a readable golden file: reading it", argv[i]);
    int exit = dflash_report(read_golden, &a, timeout_s, what, DFLASH_EXIT_BAD_INPUT);
    if (exit != DFLASH_EXIT_OK && (worst == DFLASH_EXIT_OK || exit == DFLASH_EXIT_WRONG)) worst = exit;
  }
  return worst;
}

int dflash_command_golden(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "make") == 0) return command_make(argc - 1, argv + 1);
  if (strcmp(what, "info") == 0) return command_read(argc - 1, argv + 1, 0);
  if (strcmp(what, "check") == 0) return command_read(argc - 1, argv + 1, 1);
  if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
    printf("usage: dflash-harness golden make|info|check ... ; each has --help\n");
    return DFLASH_EXIT_OK;
  }
  if (argc > 1)
    dflash_log(DFLASH_LOG_ERROR, "golden '%s' is unknown; there are make, info, check", what);
  else
    dflash_log(DFLASH_LOG_ERROR, "golden needs one of make, info, check; each has --help");
  return DFLASH_EXIT_BAD_INPUT;
}
