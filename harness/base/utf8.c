#include "base/text.h"

static bool is_continuation(unsigned char byte) { return (byte & 0xc0) == 0x80; }

/* Second bytes are bounded where a longer form would do, at surrogates, and past U+10FFFF. */
size_t dflash_utf8_length(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  if (at[0] == 0) return 0;
  if (at[0] < 0x80) return 1;
  if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
  if (!is_continuation(at[1])) return 0;
  if (at[0] < 0xe0) return 2;
  if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f)) return 0;
  if (!is_continuation(at[2])) return 0;
  if (at[0] < 0xf0) return 3;
  if ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f)) return 0;
  return is_continuation(at[3]) ? 4 : 0;
}

void dflash_text_utf8(DflashText *text, const char *bytes) {
  while (*bytes) {
    size_t length = dflash_utf8_length(bytes);
    if (length > 0)
      dflash_text_bytes(text, bytes, length);
    else
      dflash_text_bytes(text, "\xef\xbf\xbd", 3);
    bytes += length > 0 ? length : 1;
  }
}
