/* Plans as JSON: {"name": "a", "ops": [["push", 0, 5], ["truncate", 3], ["reset"]], "anchor_pos": 3, "flags": []}. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "golden/cases.h"
#include "golden/plan.h"
#include "model/json.h"

static const char *const OPS[] = {"push", "truncate", "reset"}; /* by DFLASH_OP_*; as many numbers follow */
static const int OP_NUMBERS[] = {2, 1, 0};

typedef struct Flag {
  const char *name;
  int flag;
} Flag;

static const Flag FLAGS[] = {
    {"ties", DFLASH_CASE_TIES},        {"zero-row", DFLASH_CASE_ZERO_ROW},     {"outlier", DFLASH_CASE_OUTLIER},
    {"small-rows", DFLASH_CASE_SMALL}, {"exact-integer", DFLASH_CASE_INTEGER}, {"exact-24bit", DFLASH_CASE_24BIT},
};
enum { FLAG_COUNT = sizeof FLAGS / sizeof *FLAGS };

/* ---- writing ---- */

static cJSON *ops_to_json(const DflashCasePlan *plan) {
  cJSON *ops = cJSON_CreateArray();
  for (int64_t i = 0; ops && i < plan->op_count; i++) {
    const DflashContextOp *op = &plan->ops[i];
    cJSON *item = cJSON_CreateArray();
    cJSON_AddItemToArray(item, cJSON_CreateString(OPS[op->op]));
    if (OP_NUMBERS[op->op] > 0) cJSON_AddItemToArray(item, cJSON_CreateNumber((double)op->pos));
    if (OP_NUMBERS[op->op] > 1) cJSON_AddItemToArray(item, cJSON_CreateNumber((double)op->n_rows));
    cJSON_AddItemToArray(ops, item);
  }
  return ops;
}

static cJSON *plan_to_json(const DflashCasePlan *plan) {
  cJSON *object = cJSON_CreateObject(), *flags = NULL;
  cJSON_AddStringToObject(object, "name", plan->name);
  cJSON_AddItemToObject(object, "ops", ops_to_json(plan));
  cJSON_AddNumberToObject(object, "anchor_pos", (double)plan->anchor_pos);
  if (plan->rows >= 0) cJSON_AddNumberToObject(object, "rows", (double)plan->rows);
  if (plan->n_draft >= 0) cJSON_AddNumberToObject(object, "n_draft", (double)plan->n_draft);
  if (plan->head_width >= 0) cJSON_AddNumberToObject(object, "head_width", (double)plan->head_width);
  if (plan->flags) flags = cJSON_AddArrayToObject(object, "flags");
  for (int i = 0; i < FLAG_COUNT; i++)
    if (plan->flags & FLAGS[i].flag) cJSON_AddItemToArray(flags, cJSON_CreateString(FLAGS[i].name));
  return object;
}

cJSON *dflash_plans_to_json(const DflashCasePlan *plans, int64_t count) {
  cJSON *list = cJSON_CreateArray();
  for (int64_t i = 0; list && i < count; i++) cJSON_AddItemToArray(list, plan_to_json(&plans[i]));
  return list;
}

/* ---- reading ---- */

static DflashStatus wrong(const char *what, const char *expected, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "recipe: %s must be %s", what, expected);
}

static int find_op(const char *name) {
  for (int i = 0; name && i < 3; i++)
    if (strcmp(name, OPS[i]) == 0) return i;
  return -1;
}

static DflashStatus read_op(const cJSON *item, DflashCasePlan *plan, DflashError *error) {
  static const char expected[] = "lists [\"push\", position, rows], [\"truncate\", position] or [\"reset\"]";
  int64_t numbers[2] = {0, 0};
  int op = cJSON_IsArray(item) ? find_op(cJSON_GetStringValue(cJSON_GetArrayItem(item, 0))) : -1;
  if (op < 0 || cJSON_GetArraySize(item) != 1 + OP_NUMBERS[op]) return wrong("a plan's 'ops'", expected, error);
  for (int i = 0; i < OP_NUMBERS[op]; i++)
    if (!dflash_json_integer(cJSON_GetArrayItem(item, 1 + i), &numbers[i]) || numbers[i] < 0)
      return wrong("a position or a number of rows in a plan's 'ops'", "an integer, 0 or more", error);
  if (numbers[1] > INT64_C(1) << 40) return wrong("a push in a plan's 'ops'", "of fewer rows", error);
  if (dflash_plan_add(plan, op, numbers[0], numbers[1])) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "recipe: a plan has more than %d operations", DFLASH_PLAN_OPS);
}

static DflashStatus read_ops(const cJSON *list, DflashCasePlan *plan, DflashError *error) {
  const cJSON *item;
  DflashStatus status = cJSON_IsArray(list) ? DFLASH_OK : wrong("a plan's 'ops'", "a list", error);
  if (status != DFLASH_OK) return status;
  cJSON_ArrayForEach(item, list) {
    status = read_op(item, plan, error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

static DflashStatus read_flag(const cJSON *item, DflashCasePlan *plan, DflashError *error) {
  const char *name = cJSON_GetStringValue(item);
  for (int i = 0; name && i < FLAG_COUNT; i++) {
    if (strcmp(name, FLAGS[i].name) != 0) continue;
    plan->flags |= FLAGS[i].flag;
    return DFLASH_OK;
  }
  return wrong("a plan's 'flags'", "a list of ties, zero-row, outlier, small-rows, exact-integer, exact-24bit", error);
}

static DflashStatus read_flags(const cJSON *list, DflashCasePlan *plan, DflashError *error) {
  const cJSON *item;
  if (!cJSON_IsArray(list)) return read_flag(NULL, plan, error);
  cJSON_ArrayForEach(item, list) {
    DflashStatus status = read_flag(item, plan, error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

static DflashStatus read_name(const cJSON *item, DflashCasePlan *plan, DflashError *error) {
  const char *name = cJSON_GetStringValue(item);
  if (!name || strlen(name) >= sizeof plan->name) return wrong("a plan's 'name'", "a text of 1 to 31 letters", error);
  snprintf(plan->name, sizeof plan->name, "%s", name);
  return DFLASH_OK;
}

static DflashStatus read_number(const cJSON *item, DflashCasePlan *plan, DflashError *error) {
  const char *name = item->string;
  int64_t *place = NULL;
  if (strcmp(name, "anchor_pos") == 0) place = &plan->anchor_pos;
  if (strcmp(name, "rows") == 0) place = &plan->rows;
  if (strcmp(name, "n_draft") == 0) place = &plan->n_draft;
  if (strcmp(name, "head_width") == 0) place = &plan->head_width;
  if (!place)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "recipe: unknown member '%s' of a plan; known are name, ops, anchor_pos, rows, n_draft, "
                            "head_width, flags",
                            name);
  if (dflash_json_integer(item, place) && *place >= 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "recipe: '%s' of a plan must be an integer, 0 or more", name);
}

static DflashStatus read_member(const cJSON *item, DflashCasePlan *plan, DflashError *error) {
  if (strcmp(item->string, "name") == 0) return read_name(item, plan, error);
  if (strcmp(item->string, "ops") == 0) return read_ops(item, plan, error);
  if (strcmp(item->string, "flags") == 0) return read_flags(item, plan, error);
  return read_number(item, plan, error);
}

static DflashStatus read_plan(const cJSON *object, DflashCasePlan *plan, DflashError *error) {
  const cJSON *item;
  *plan = (DflashCasePlan){.rows = -1, .n_draft = -1, .head_width = -1, .anchor_pos = -1};
  if (!cJSON_IsObject(object)) return wrong("'plans'", "a list of objects", error);
  cJSON_ArrayForEach(item, object) {
    DflashStatus status = read_member(item, plan, error);
    if (status != DFLASH_OK) return status;
  }
  if (plan->anchor_pos >= 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "recipe: plan '%s' lacks 'anchor_pos', the position of its block's first row; valid: an "
                          "integer, 0 or more",
                          plan->name);
}

DflashStatus dflash_plans_from_json(const cJSON *list, DflashRecipe *recipe, DflashError *error) {
  const cJSON *item;
  recipe->plan_count = 0;
  if (!cJSON_IsArray(list) || !list->child) return wrong("'plans'", "a list of objects, one at least", error);
  cJSON_ArrayForEach(item, list) {
    if (recipe->plan_count == DFLASH_PLANS_MAX)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "recipe: more than %d plans", DFLASH_PLANS_MAX);
    DflashStatus status = read_plan(item, &recipe->plans[recipe->plan_count++], error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}
