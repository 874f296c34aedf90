#include "model/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t dflash_base64_length(size_t bytes) { return (bytes / 3 + (bytes % 3 != 0)) * 4; }

void dflash_base64_encode(const void *data, size_t bytes, char *text) {
  const uint8_t *in = data;
  for (size_t at = 0; at < bytes; at += 3) {
    size_t left = bytes - at;
    uint32_t word = (uint32_t)in[at] << 16 | (left > 1 ? (uint32_t)in[at + 1] << 8 : 0) | (left > 2 ? in[at + 2] : 0);
    *text++ = digits[word >> 18];
    *text++ = digits[word >> 12 & 63];
    *text++ = left > 1 ? digits[word >> 6 & 63] : '=';
    *text++ = left > 2 ? digits[word & 63] : '=';
  }
  *text = '\0';
}

static int digit_value(char digit) {
  if (digit >= 'A' && digit <= 'Z') return digit - 'A';
  if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
  if (digit >= '0' && digit <= '9') return digit - '0' + 52;
  return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* Four digits into up to three bytes; bits past the last byte must be 0. */
static bool decode_group(const char *text, uint8_t *out, size_t bytes) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; i++) {
    int value = i <= bytes ? digit_value(text[i]) : text[i] == '=' ? 0 : -1;
    if (value < 0) return false;
    word = word << 6 | (uint32_t)value;
  }
  for (size_t i = 0; i < bytes; i++) out[i] = (uint8_t)(word >> (16 - 8 * i));
  return bytes == 3 || (word & ((UINT32_C(1) << (24 - 8 * bytes)) - 1)) == 0;
}

bool dflash_base64_decode(const char *text, size_t length, void *data, size_t bytes) {
  uint8_t *out = data;
  if (length != dflash_base64_length(bytes)) return false;
  for (size_t at = 0; at < bytes; at += 3, text += 4)
    if (!decode_group(text, out + at, bytes - at < 3 ? bytes - at : 3)) return false;
  return true;
}
