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

/* Bits, not values: a NaN that stays is no change, a zero that changes its sign is one. */
static bool same_bits(const float *a, const float *b, size_t count) {
  const void *left = a, *right = b;
  return memcmp(left, right, count * sizeof *a) == 0;
}

long long dflash_loan_return(DflashLoan *loan) {
  long long changed = -1;
  if (loan->copy != NULL && !same_bits(loan->copy, loan->own, loan->count))
    for (size_t i = 0; changed < 0 && i < loan->count; i++)
      if (!same_bits(&loan->copy[i], &loan->own[i], 1)) changed = (long long)i;
  free(loan->copy);
  *loan = (DflashLoan){0};
  return changed;
}
