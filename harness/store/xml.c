#include "store/xml.h"

#include <string.h>

/* Control characters but tab and line ends, and U+FFFE, U+FFFF, are no XML characters. */
static bool is_xml(const char *at, size_t length) {
  if (length == 1) return (unsigned char)at[0] >= 0x20 || strchr("\t\n\r", at[0]) != NULL;
  return length == 2 || length == 4 ||
         (length == 3 && memcmp(at, "\xef\xbf\xbe", 3) != 0 && memcmp(at, "\xef\xbf\xbf", 3) != 0);
}

/* A reader turns tabs and line ends of an attribute into blanks, and carriage returns anywhere into line ends. */
static const char *reference(char byte, bool in_attribute) {
  switch (byte) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\t':
    return in_attribute ? "&#9;" : NULL;
  case '\n':
    return in_attribute ? "&#10;" : NULL;
  case '\r':
    return "&#13;";
  default:
    return NULL;
  }
}

static void append(DflashText *out, const char *text, bool in_attribute) {
  while (*text) {
    size_t length = dflash_utf8_length(text);
    const char *escaped = reference(*text, in_attribute);
    if (escaped)
      dflash_text_bytes(out, escaped, strlen(escaped));
    else if (is_xml(text, length))
      dflash_text_bytes(out, text, length);
    else
      dflash_text_bytes(out, "\xef\xbf\xbd", 3);
    text += length > 0 ? length : 1;
  }
}

void dflash_xml_text(DflashText *out, const char *text) { append(out, text, false); }

void dflash_xml_attribute(DflashText *out, const char *name, const char *value) {
  dflash_text_append(out, " %s=\"", name);
  append(out, value, true);
  dflash_text_append(out, "\"");
}
