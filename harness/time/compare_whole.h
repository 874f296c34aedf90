/* A whole and its parts compared under one error rate: a block and its groups of stages. */
#ifndef DFLASH_TIME_COMPARE_WHOLE_H
#define DFLASH_TIME_COMPARE_WHOLE_H

#include "time/compare.h"

/* Half of the rate is the whole's, the other half is shared by the parts; Holm's procedure hands on what is left over.
 * A part changes when it does so by more than the share of its own time and moves the whole by more than a tenth of the
 * share: a part of 0.1% cannot fail a block by 2% of itself. */
#define DFLASH_TIMES_WHOLE_WEIGHT 0.5
#define DFLASH_TIMES_PART_LEAST 0.1

typedef struct DflashTimesPart {
  DflashTimeUnits units; /* a_count 0: it only stands in `shift.a` and `shift.b` (medians), and is not called */
  DflashTimesItem item;
  double moved; /* what it adds to the whole, as a share of the whole's A; NaN where unknown */
} DflashTimesPart;

typedef struct DflashTimesWhole {
  DflashTimeShift whole;
  int verdict;   /* the whole's when that changed; else slower or faster when a part did, slower before faster; else the
                    whole's: the same or cannot tell */
  int64_t place; /* the part that moved the whole most in the direction of the verdict; -1: nothing moved */
  int64_t least, least_parts; /* pairs or units a side that can call the whole, a part */
} DflashTimesWhole;

DflashStatus dflash_times_whole(const DflashTimesRule *rule, double rate, const DflashTimeUnits *whole,
                                DflashTimesPart *parts, int64_t count, DflashTimesWhole *out, DflashError *error);

/* The rate of look 0, 1, 2, ... at data that grows: halves, whose sum stays below `rate`. */
double dflash_times_look_rate(double rate, int64_t look);
/* At how many pairs to look: first where each of `parts` can be called, then at half as many again each time. */
int64_t dflash_times_first_look(double rate, int64_t parts);
int64_t dflash_times_next_look(int64_t pairs);

#endif
