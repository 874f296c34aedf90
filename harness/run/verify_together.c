#include "run/verify_together.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/case_run.h"

static DflashStatus open_runs(DflashSession *session, DflashCaseRun *runs, int64_t count, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK && i < count; i++)
    status = dflash_case_run_open(&runs[i], session, i, NULL, error);
  return status;
}

/* A backend's failure is a verdict of the case that it happened in. */
static void blame(DflashVerdicts *verdicts, const DflashCaseRun *run, const DflashError *error) {
  DflashVerdict *verdict = dflash_verdict_add(verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, -1, "together");
  dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "case %s beside others: %s", run->c.name, error->message);
}

/* Operation by operation: the first of every case, the second of every case, ... */
static bool feed_in_turn(DflashCaseRun *runs, int64_t count, DflashVerdicts *verdicts) {
  int64_t most = 0;
  DflashError error = {0};
  for (int64_t i = 0; i < count; i++) {
    DflashSession *s = runs[i].session;
    DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = DFLASH_SEQUENCE_CAPTURE};
    if (s->backend->sequence_open(s->model, &desc, &runs[i].sequence, &error) != DFLASH_OK) {
      blame(verdicts, &runs[i], &error);
      return false;
    }
    most = runs[i].c.op_count > most ? runs[i].c.op_count : most;
  }
  for (int64_t op = 0; op < most; op++)
    for (int64_t i = 0; i < count; i++)
      if (op < runs[i].c.op_count && dflash_case_apply(&runs[i], runs[i].sequence, op, &error) != DFLASH_OK) {
        blame(verdicts, &runs[i], &error);
        return false;
      }
  return true;
}

static void judge(DflashCaseRun *run, const DflashProduct *again, DflashVerdicts *verdicts) {
  char label[64] = "";
  DflashVerdict *verdict = dflash_verdict_add(verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, -1, "together");
  int64_t damage = dflash_product_damage(run, again, label);
  if (damage != 0)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_OVERRUN, "case %s beside others: %s: wrote outside its output",
                        run->c.name, label);
  else if (dflash_product_fails(run, &run->product, label))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_MISMATCH, "case %s beside others is wrong, first at %s", run->c.name,
                        label);
  else if (dflash_product_fails(run, again, label))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_MISMATCH, "case %s after blocks of others is wrong, first at %s",
                        run->c.name, label);
  else if (run->session->info.repeatable && dflash_product_differs(run, &run->product, again, label))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_UNREPEATABLE,
                        "case %s: blocks of others in between change bits, first at %s", run->c.name, label);
  else
    dflash_verdict_note(verdict, DFLASH_OUTCOME_PASS, "case %s beside others", run->c.name);
}

static bool run_block(DflashCaseRun *run, DflashProduct *product, uint32_t poison, DflashVerdicts *verdicts) {
  DflashError error = {0};
  if (dflash_product_run(run, run->sequence, product, poison, &error) == DFLASH_OK) return true;
  blame(verdicts, run, &error);
  return false;
}

static DflashStatus run_in_turn(DflashCaseRun *runs, int64_t count, DflashVerdicts *verdicts, DflashError *error) {
  for (int64_t i = 0; i < count; i++)
    if (!run_block(&runs[i], &runs[i].product, DFLASH_POISON_BITS, verdicts)) return DFLASH_OK;
  for (int64_t i = count - 1; i >= 0; i--) {
    DflashProduct again = {0};
    DflashStatus status = dflash_product_open(&runs[i], &again, error);
    bool ran = status == DFLASH_OK && run_block(&runs[i], &again, DFLASH_POISON_BITS ^ 0x5a5a5a, verdicts);
    if (ran) judge(&runs[i], &again, verdicts);
    dflash_product_close(&again);
    if (status != DFLASH_OK || !ran) return status;
  }
  return DFLASH_OK;
}

DflashStatus dflash_verify_together(DflashSession *session, int64_t count, DflashVerdicts *verdicts,
                                    DflashError *error) {
  DflashCaseRun *runs = calloc((size_t)count, sizeof *runs);
  if (runs == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for %lld cases", (long long)count);
  DflashStatus status = open_runs(session, runs, count, error);
  dflash_session_check(session, DFLASH_MODE_CHAIN, "together");
  if (status == DFLASH_OK && feed_in_turn(runs, count, verdicts)) status = run_in_turn(runs, count, verdicts, error);
  for (int64_t i = 0; i < count; i++) dflash_case_run_close(&runs[i]);
  free(runs);
  return status;
}
