/* exp, log, sin and cos in float64, made of additions, multiplications and integer operations only: a C library's own
 * differ in the last bit between versions and processors, and golden values must not. Errors stay below 3 units
 * of the last place of float64. */
#ifndef DFLASH_GOLDEN_ORACLE_MATH_H
#define DFLASH_GOLDEN_ORACLE_MATH_H

double dflash_oracle_exp(double x);
double dflash_oracle_log(double x); /* x positive and normal */

/* Any angle that a float holds: the quadrant is found in 128-bit integers. */
void dflash_oracle_sincos(float angle, double *sine, double *cosine);

#endif
