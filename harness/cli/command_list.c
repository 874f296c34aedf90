#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "golden/generate.h"
#include "model/geometry.h"
#include "model/stage_table.h"
#include "run/loader.h"
#include "run/names.h"
#include "run/report.h"

static const char usage[] = "usage: dflash-harness list backends|devices|stages|presets|cases [FILE]\n\n"
                            "backends and devices load each backend in a process of its own; 'cases FILE' shows a\n"
                            "golden's cases, 'cases' the kinds that 'golden make --case' knows.";

typedef struct ListArguments {
  const char *search, *backend, *file;
  int devices;
} ListArguments;

typedef struct One {
  const char *path;
  int devices;
} One;

static int print_devices(const DflashBackend *b, FILE *out) {
  DflashDevice found[16];
  uint32_t count = 0;
  DflashError error = {0};
  memset(found, 0, sizeof found);
  for (int i = 0; i < 16; i++) found[i].struct_size = sizeof found[i];
  if (b->devices(found, 16, &count, &error) != DFLASH_OK) {
    fprintf(out, "%-12s none: %s\n", b->name, error.message);
    return DFLASH_EXIT_UNAVAILABLE;
  }
  for (uint32_t i = 0; i < count && i < 16; i++)
    fprintf(out, "%-12s %-10s %s%s, %.1f GiB, %s\n", b->name, found[i].id, found[i].name,
            found[i].is_cpu ? " (CPU)" : "", (double)found[i].memory_bytes / (1 << 30), found[i].driver);
  return DFLASH_EXIT_OK;
}

static int print_backend(void *context, FILE *out, DflashError *error) {
  const One *one = context;
  DflashLoaded loaded;
  DflashError refused = {0};
  int result = DFLASH_EXIT_OK;
  (void)error; /* a backend that cannot be used is one line of the list */
  if (dflash_backend_load(one->path, NULL, &loaded, &refused) != DFLASH_OK) {
    fprintf(out, "not usable: %s\n", refused.message);
    return DFLASH_EXIT_UNAVAILABLE;
  }
  const DflashBackend *b = loaded.backend;
  if (one->devices)
    result = print_devices(b, out);
  else
    fprintf(out, "%-12s %-8s %s\n%21s options: %s\n%21s %s\n", b->name, b->version, b->about, "", b->options, "",
            loaded.path);
  dflash_backend_unload(&loaded);
  return result;
}

typedef struct Listing {
  const ListArguments *arguments;
  DflashNames names;
  int shown, exit; /* exit: of the one asked for; of all, whether one crashed */
} Listing;

static void list_one(void *context, const char *name, const char *path) {
  Listing *listing = context;
  const char *wanted = listing->arguments->backend;
  dflash_names_add(&listing->names, name);
  if (wanted != NULL && strcmp(wanted, name) != 0) return;
  One one = {path, listing->arguments->devices};
  char what[1200];
  snprintf(what, sizeof what, "%s: the backend", path);
  listing->shown++;
  int exit = dflash_report(print_backend, &one, 60, what, DFLASH_EXIT_WRONG);
  if (wanted != NULL || exit != DFLASH_EXIT_UNAVAILABLE) listing->exit = exit > listing->exit ? exit : listing->exit;
}

static void log_none(const Listing *listing) {
  DflashText names = {0};
  const char *wanted = listing->arguments->backend;
  dflash_names_list(&listing->names, &names);
  if (wanted != NULL)
    dflash_log(DFLASH_LOG_ERROR, "backend '%s' is not here; found: %s", wanted, names.size > 0 ? names.data : "none");
  else
    dflash_log(DFLASH_LOG_ERROR, "no backend was found");
  dflash_text_free(&names);
}

static int list_backends(const ListArguments *a) {
  Listing listing = {.arguments = a};
  if (a->backend != NULL && strchr(a->backend, '/') != NULL)
    list_one(&listing, a->backend, a->backend);
  else
    dflash_backend_find(a->search, list_one, &listing);
  if (listing.shown == 0) {
    log_none(&listing);
    listing.exit = a->backend != NULL ? DFLASH_EXIT_UNAVAILABLE : DFLASH_EXIT_NOTHING;
  }
  dflash_names_close(&listing.names);
  return listing.exit;
}

static const char *input_name(int32_t input) {
  switch (input) {
  case DFLASH_STAGE_TAPS:
    return "TAPS";
  case DFLASH_STAGE_RESIDUAL:
    return "RESIDUAL";
  case DFLASH_STAGE_LAST:
    return "LAST";
  case DFLASH_STAGE_HELD_K:
    return "HELD_K";
  case DFLASH_STAGE_HELD_V:
    return "HELD_V";
  default:
    return dflash_stage_row(input)->name;
  }
}

static void print_inputs(const DflashStageRow *row) {
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++)
    printf("%s %s", i > 0 ? "," : " <-", input_name(row->inputs[i]));
  putchar('\n');
}

static int list_stages(void) {
  static const char *const widths[] = {"hidden",       "heads*head_dim", "kv_heads*head_dim", "2*conv_kernel*groups",
                                       "intermediate", "head_width",     "selector_rank",     "selector_top"};
  static const char *const rows[] = {"rows of the push", "rows", "n_draft"};
  for (int32_t s = 0; s < DFLASH_STAGE_COUNT; s++) {
    const DflashStageRow *row = dflash_stage_row(s);
    printf("%-16s %-10s [%s, %s], %s", row->name, row->scope == DFLASH_SCOPE_LAYER ? "per layer" : "once",
           rows[row->rows], widths[row->width], dflash_group_label(row->group));
    print_inputs(row);
  }
  return DFLASH_EXIT_OK;
}

static int list_presets(void) {
  for (size_t i = 0; i < dflash_preset_count(); i++) {
    const DflashPreset *p = dflash_preset(i);
    printf("%-14s %s\n", p->name, p->about);
  }
  return DFLASH_EXIT_OK;
}

static int print_cases(void *context, FILE *out, DflashError *error) {
  const ListArguments *a = context;
  DflashGolden *golden = NULL;
  DflashStatus status = dflash_golden_open(a->file, 0, &golden, error);
  if (status != DFLASH_OK) return dflash_status_exit(status);
  for (int64_t i = 0; i < dflash_golden_case_count(golden); i++)
    fprintf(out, "%s\n", dflash_golden_case_name(golden, i));
  dflash_golden_close(golden);
  return DFLASH_EXIT_OK;
}

static int list_cases(ListArguments *a) {
  if (a->file != NULL) {
    char what[1200];
    snprintf(what, sizeof what, "%s: not a readable golden file: reading it", a->file);
    return dflash_report(print_cases, a, 60, what, DFLASH_EXIT_BAD_INPUT);
  }
  for (size_t i = 0; i < dflash_case_kind_count(); i++)
    printf("%-16s %s\n", dflash_case_kind(i)->name, dflash_case_kind(i)->about);
  return DFLASH_EXIT_OK;
}

static int list(const char *what, ListArguments *a) {
  if (strcmp(what, "backends") == 0) return list_backends(a);
  if (strcmp(what, "devices") == 0) {
    a->devices = 1;
    return list_backends(a);
  }
  if (strcmp(what, "stages") == 0) return list_stages();
  if (strcmp(what, "presets") == 0) return list_presets();
  if (strcmp(what, "cases") == 0) return list_cases(a);
  dflash_log(DFLASH_LOG_ERROR, "cannot list '%s'; there are backends, devices, stages, presets, cases", what);
  return DFLASH_EXIT_BAD_INPUT;
}

int dflash_command_list(int argc, char **argv) {
  ListArguments a = {0};
  const DflashArgument table[] = {{"backend,b", "NAME", "only this backend", DFLASH_ARGUMENT_TEXT, &a.backend, 0},
                                  {"backend-path", "PLACES", "folders or files, joined by ':', that are searched first",
                                   DFLASH_ARGUMENT_TEXT, &a.search, 0}};
  int operands = 0, helped = 0;
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, 2, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && (operands < 1 || operands > 2))
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT,
                              "list one of backends, devices, stages, presets, cases [FILE]");
  if (status == DFLASH_OK) status = dflash_backend_check_search(a.search, &error);
  if (status != DFLASH_OK) return dflash_command_fail(&error);
  a.file = operands == 2 ? argv[2] : NULL;
  if (a.file != NULL && strcmp(argv[1], "cases") != 0)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "list %s takes no file: '%s'", argv[1], a.file);
  if (status != DFLASH_OK) return dflash_command_fail(&error);
  return list(argv[1], &a);
}
