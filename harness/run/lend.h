/* What a backend is given to read is a copy: one that writes into it is found out, and spoils nothing. */
#ifndef DFLASH_RUN_LEND_H
#define DFLASH_RUN_LEND_H

#include <stdbool.h>
#include <stddef.h>

typedef struct DflashLoan {
  const float *own; /* the lender's */
  float *copy;      /* what is lent; NULL: nothing */
  size_t count;
} DflashLoan;

/* A copy of `count` floats; NULL data lends NULL. False when memory is out. */
bool dflash_lend(DflashLoan *loan, const float *data, size_t count);
/* Takes the copy back; the index of the first element that was changed, -1 when none was. */
long long dflash_loan_return(DflashLoan *loan);

#endif
