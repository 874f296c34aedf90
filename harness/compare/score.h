/* The score of one element. */
#ifndef DFLASH_COMPARE_SCORE_H
#define DFLASH_COMPARE_SCORE_H

/* Spacing of f32 at |x|: the ulp of a normal number, 2^-149 for zero and denormals. x is finite. */
double dflash_spacing(float x);
/* |got - golden| / (lambda * sigma + floor), floor half the distance to the nearest other f32, plus 2^-149 where sigma
 * is not 0. With sigma 0 equal values score 0 and others at least 2. A sigma that is no finite number from 0 on gives
 * infinity. */
double dflash_score(double got, double golden, double sigma);
/* The same of a value that was stored in `storage` (DFLASH_STORED_*) and so rounded once more. */
double dflash_score_stored(double got, double golden, double sigma, int storage);
/* Spacing of the storage's numbers at |x|; that of its smallest ones below them. */
double dflash_storage_spacing(float x, int storage);
/* (|got - golden| - floor) / sigma, the lambda at which the score would be 1; 0 below the floor or where sigma is not
 * finite and positive. */
double dflash_score_lambda(double got, double golden, double sigma);

#endif
