#include "golden/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "golden/cases.h"
#include "model/context.h"

enum { TAP_ROWS_MAX = 1 << 20 };

int dflash_plan_add(DflashCasePlan *plan, int32_t op, int64_t pos, int64_t rows) {
  if (plan->op_count == DFLASH_PLAN_OPS) return 0;
  int64_t first_row = op == DFLASH_OP_PUSH ? plan->tap_rows : 0;
  plan->ops[plan->op_count++] = (DflashContextOp){op, pos, first_row, rows};
  plan->tap_rows += rows;
  return 1;
}

static DflashStatus check_range(const char *name, const char *field, int64_t value, int64_t least, int64_t most,
                                DflashError *error) {
  if (value >= least && value <= most) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "plan %s: %s is %" PRId64 ", valid are %" PRId64 " to %" PRId64, name, field, value, least,
                          most);
}

/* A plan's name is a case's: part of paths in files, and of patterns. */
static DflashStatus check_name(const DflashRecipe *r, int64_t index, DflashError *error) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+^_";
  const char *name = r->plans[index].name;
  if (!*name || name[strspn(name, allowed)])
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "plan %" PRId64 ": its name is '%s'; valid are letters, digits, '-', '+', '^' and '_'",
                            index, name);
  for (int64_t i = 0; i < index; i++)
    if (strcmp(r->plans[i].name, name) == 0)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "two plans have the name '%s'", name);
  return DFLASH_OK;
}

static DflashStatus check_ops(const DflashCasePlan *plan, DflashError *error) {
  int64_t first, len, rows = 0;
  for (int64_t i = 0; i < plan->op_count; i++) {
    DflashStatus status = dflash_context_check_op(&plan->ops[i], i, error);
    if (status != DFLASH_OK) return dflash_error_prefix(error, "plan %s", plan->name);
    status = check_range(plan->name, "rows pushed", plan->ops[i].n_rows, 0, TAP_ROWS_MAX - rows, error);
    if (status != DFLASH_OK) return status;
    rows += plan->ops[i].n_rows;
  }
  if (dflash_context_replay(plan->ops, plan->op_count, &first, &len, NULL, NULL, error) == DFLASH_OK) return DFLASH_OK;
  return dflash_error_prefix(error, "plan %s", plan->name);
}

static DflashStatus check_flags(const DflashRecipe *r, const DflashCasePlan *plan, DflashError *error) {
  int64_t period, rows;
  const char *why = NULL;
  if (plan->flags & DFLASH_CASE_TIES)
    why = r->head_path ? "it needs a drawn head" : dflash_case_ties(&r->geometry, &period, &rows);
  if (plan->flags & DFLASH_CASE_EXACT && r->weights_path) why = "exact data needs drawn weights";
  if ((plan->flags & DFLASH_CASE_EXACT) == DFLASH_CASE_EXACT) why = "exact data is of one kind";
  if ((plan->flags ^ r->plans[0].flags) & DFLASH_CASE_EXACT) why = "exact data needs weights of its own";
  if (plan->flags & DFLASH_CASE_EXACT && plan->flags & ~DFLASH_CASE_EXACT) why = "exact data takes no other flag";
  if (!why) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "plan %s is not possible here: %s", plan->name, why);
}

static DflashStatus resolve_one(const DflashRecipe *r, DflashCasePlan *plan, DflashError *error) {
  const DflashGeometry *g = &r->geometry;
  if (plan->rows < 0) plan->rows = r->rows;
  if (plan->n_draft < 0) plan->n_draft = plan->rows - 1 < r->n_draft ? plan->rows - 1 : r->n_draft;
  if (plan->head_width < 0) plan->head_width = r->head_width;
  DflashStatus status = check_range(plan->name, "rows", plan->rows, 2, g->block, error);
  if (status == DFLASH_OK) status = check_range(plan->name, "n_draft", plan->n_draft, 1, plan->rows - 1, error);
  if (status == DFLASH_OK)
    status = check_range(plan->name, "head_width", plan->head_width, g->selector_top, g->vocab, error);
  if (status == DFLASH_OK)
    status = check_range(plan->name, "anchor_pos", plan->anchor_pos, 0, DFLASH_LAST_POSITION - plan->rows, error);
  if (status == DFLASH_OK) status = check_ops(plan, error);
  return status == DFLASH_OK ? check_flags(r, plan, error) : status;
}

DflashStatus dflash_plans_resolve(DflashRecipe *recipe, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  if (recipe->plan_count < 0 || recipe->plan_count > DFLASH_PLANS_MAX)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%" PRId64 " plans; at most %d are possible",
                            recipe->plan_count, DFLASH_PLANS_MAX);
  for (int64_t i = 0; status == DFLASH_OK && i < recipe->plan_count; i++) {
    status = check_name(recipe, i, error);
    if (status == DFLASH_OK) status = resolve_one(recipe, &recipe->plans[i], error);
  }
  return status;
}
