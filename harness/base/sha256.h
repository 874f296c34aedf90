/* SHA-256 (OpenSSL's), fed in pieces. */
#ifndef DFLASH_BASE_SHA256_H
#define DFLASH_BASE_SHA256_H

#include <stddef.h>

typedef struct DflashSha256 DflashSha256;

DflashSha256 *dflash_sha256_open(void); /* NULL: memory is out */
void dflash_sha256_update(DflashSha256 *hash, const void *data, size_t bytes);
/* Writes 64 lower-case hex digits and NUL, releases the handle. "" when hashing failed or the handle is NULL. */
void dflash_sha256_close(DflashSha256 *hash, char hex[65]);

#endif
