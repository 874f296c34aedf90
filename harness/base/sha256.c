#include "base/sha256.h"

#include <stdbool.h>
#include <stdlib.h>

#include <openssl/evp.h>

struct DflashSha256 {
  EVP_MD_CTX *context;
  bool failed;
};

DflashSha256 *dflash_sha256_open(void) {
  DflashSha256 *hash = calloc(1, sizeof *hash);
  if (!hash) return NULL;
  hash->context = EVP_MD_CTX_new();
  if (hash->context && EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) == 1) return hash;
  EVP_MD_CTX_free(hash->context);
  free(hash);
  return NULL;
}

void dflash_sha256_update(DflashSha256 *hash, const void *data, size_t bytes) {
  if (bytes > 0 && EVP_DigestUpdate(hash->context, data, bytes) != 1) hash->failed = true;
}

void dflash_sha256_close(DflashSha256 *hash, char hex[65]) {
  static const char digits[] = "0123456789abcdef";
  hex[0] = '\0';
  if (!hash) return;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!hash->failed && EVP_DigestFinal_ex(hash->context, digest, &size) == 1 && size == 32) {
    for (int i = 0; i < 32; i++) {
      hex[2 * i] = digits[digest[i] >> 4];
      hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = '\0';
  }
  EVP_MD_CTX_free(hash->context);
  free(hash);
}
