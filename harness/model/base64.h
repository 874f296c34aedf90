/* Base64 as in RFC 4648, with padding and nothing else between the digits. */
#ifndef DFLASH_MODEL_BASE64_H
#define DFLASH_MODEL_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Digits that `bytes` bytes take. */
size_t dflash_base64_length(size_t bytes);

/* Writes dflash_base64_length(bytes) digits and NUL. */
void dflash_base64_encode(const void *data, size_t bytes, char *text);

/* False unless the text is exactly the encoding of `bytes` bytes. */
bool dflash_base64_decode(const char *text, size_t length, void *data, size_t bytes);

#endif
