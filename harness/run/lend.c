#include "run/lend.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool dflash_lend(DflashLoan *loan, const float *data, size_t count) {
  *loan = (DflashLoan){.own = data, .count = count};
  if (data == NULL) return true;
  loan->copy = dflash_alloc(count > 0 ? count : 1, sizeof *loan->copy);
  if (loan->copy == NULL) return false;
  if (count > 0) memcpy(loan->copy, data, count * sizeof *loan->copy);
  return true;
}

long long dflash_loan_return(DflashLoan *loan) {
  long long changed = -1;
  if (loan->copy != NULL && memcmp(loan->copy, loan->own, loan->count * sizeof *loan->copy) != 0)
    for (size_t i = 0; changed < 0 && i < loan->count; i++)
      if (memcmp(&loan->copy[i], &loan->own[i], sizeof *loan->copy) != 0) changed = (long long)i;
  free(loan->copy);
  *loan = (DflashLoan){0};
  return changed;
}
