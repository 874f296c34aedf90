/* Reading the members of a record. Internal to store. */
#ifndef DFLASH_STORE_FIELDS_H
#define DFLASH_STORE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

const char *dflash_field_text(const struct cJSON *record, const char *name); /* "" when absent or no string */
/* NaN when absent; "inf", "-inf" and "nan" are read as numbers. */
double dflash_field_number(const struct cJSON *record, const char *name);
bool dflash_field_true(const struct cJSON *record, const char *name);
const struct cJSON *dflash_field(const struct cJSON *record, const char *name); /* NULL when absent */

bool dflash_record_is(const struct cJSON *record, const char *type);

/* "attn.mix/2", "final.norm": stage and layer of a record. */
const char *dflash_record_label(const struct cJSON *record, char *text, size_t size);

/* The record as one line without newline: infinity and NaN as strings, every string valid UTF-8. NULL when memory is
 * out; free() releases. */
char *dflash_record_line(const struct cJSON *record);

/* What an outcome's name means to a reader; an unknown name is FAILED. */
typedef enum DflashOutcomeClass {
  DFLASH_OUTCOME_PASSED,
  DFLASH_OUTCOME_SKIPPED, /* nothing was judged, for a reason */
  DFLASH_OUTCOME_FAILED,
  DFLASH_OUTCOME_BROKEN /* failed without a value to judge: error, crash, hang */
} DflashOutcomeClass;
DflashOutcomeClass dflash_outcome_class(const char *name);

#endif
