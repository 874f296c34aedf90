/* What numbers.comp computes: its constant 0. Read by C and by GLSL. */
#define NUMBERS_EXP 0
#define NUMBERS_RSQRT 1
#define NUMBERS_COSINE 2
#define NUMBERS_SINE 3
#define NUMBERS_DIVIDE 4
#define NUMBERS_QUOTIENT 5
#define NUMBERS_F16 6
#define NUMBERS_BF16 7
#define NUMBERS_IS_NAN 8
#define NUMBERS_IS_FINITE 9
