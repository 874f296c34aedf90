/* JSON from untrusted files, on top of cJSON: bounded size, whole text, exact integers, keys by exact case. */
#ifndef DFLASH_MODEL_JSON_H
#define DFLASH_MODEL_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "dflash/status.h"

struct cJSON;

/* Longest text that is parsed; a tree takes up to some 30 times its text. */
#define DFLASH_JSON_LIMIT (UINT64_C(16) << 20)

/* One object in UTF-8 with nothing but blanks after it. `what` names the text in messages. The result is
 * released by cJSON_Delete; it is NULL on failure. */
DflashStatus dflash_json_parse(const char *text, uint64_t size, const char *what, struct cJSON **object,
                               DflashError *error);

/* A member by its exact name. NULL when it is absent or null, or when `object` is no object. */
const struct cJSON *dflash_json_get(const struct cJSON *object, const char *key);

/* The text of a member; NULL when it is absent or no string. */
const char *dflash_json_text(const struct cJSON *object, const char *key);

/* An integer that a double holds exactly: at most 2^53 in magnitude. */
bool dflash_json_integer(const struct cJSON *item, int64_t *value);

bool dflash_utf8_valid(const void *text, uint64_t size);

#endif
