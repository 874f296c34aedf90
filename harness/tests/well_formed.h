/* Whether a text is a well-formed XML document of the kind that the JUnit writer makes: prolog, elements, attributes in
 * double quotes, character data, references. No DTD, comments or CDATA. Returns NULL, or what is wrong. */
#ifndef DFLASH_TESTS_WELL_FORMED_H
#define DFLASH_TESTS_WELL_FORMED_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef struct XmlReader {
  const char *at, *wrong;
  int depth, roots;
} XmlReader;

static inline int xml_char(const char *at) {
  size_t length = dflash_utf8_length(at);
  if (length == 1) return (unsigned char)*at >= 0x20 || *at == '\t' || *at == '\n' || *at == '\r' ? 1 : 0;
  if (length == 3 && (memcmp(at, "\xef\xbf\xbe", 3) == 0 || memcmp(at, "\xef\xbf\xbf", 3) == 0)) return 0;
  return (int)length;
}

/* Characters up to (not including) `end`. */
static inline void xml_data(XmlReader *r, char end) {
  static const char *const references[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#9;", "&#10;", "&#13;"};
  while (*r->at && *r->at != end) {
    int length = xml_char(r->at);
    if (length == 0 || *r->at == '<') {
      r->wrong = length == 0 ? "a byte that is no XML character" : "a bare <";
      return;
    }
    if (*r->at == '&') {
      length = 0;
      for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
        if (strncmp(r->at, references[i], strlen(references[i])) == 0) length = (int)strlen(references[i]);
      if (length == 0) {
        r->wrong = "an unknown reference";
        return;
      }
    }
    r->at += length;
  }
}

static inline size_t xml_name(const char *at) {
  size_t length = 0;
  while (isalpha((unsigned char)at[length]) || (length > 0 && strchr("-_:.", at[length]) && at[length])) length++;
  return length;
}

static inline void xml_element(XmlReader *r);

static inline void xml_attributes(XmlReader *r) {
  while (*r->at == ' ' && !r->wrong) {
    r->at++;
    size_t length = xml_name(r->at);
    if (length == 0 || strncmp(r->at + length, "=\"", 2) != 0) {
      r->wrong = "a broken attribute";
      return;
    }
    r->at += length + 2;
    xml_data(r, '"');
    if (!r->wrong && *r->at != '"') r->wrong = "an attribute without end";
    if (!r->wrong) r->at++;
  }
}

static inline void xml_content(XmlReader *r, const char *name, size_t length) {
  while (!r->wrong) {
    xml_data(r, '<');
    if (r->wrong) return;
    if (*r->at == '\0')
      r->wrong = "an element without end";
    else if (r->at[1] != '/')
      xml_element(r);
    else if (strncmp(r->at + 2, name, length) != 0 || r->at[2 + length] != '>')
      r->wrong = "an end of another element";
    else {
      r->at += 3 + length;
      return;
    }
  }
}

static inline void xml_element(XmlReader *r) {
  const char *name = r->at + 1;
  size_t length = xml_name(name);
  if (*r->at != '<' || length == 0) {
    r->wrong = "no element";
    return;
  }
  r->at = name + length;
  xml_attributes(r);
  if (r->wrong) return;
  if (strncmp(r->at, "/>", 2) == 0) {
    r->at += 2;
  } else if (*r->at == '>') {
    r->at++;
    xml_content(r, name, length);
  } else {
    r->wrong = "a broken start of an element";
  }
}

static inline const char *xml_wrong(const char *text) {
  static const char prolog[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (strncmp(text, prolog, sizeof prolog - 1) != 0) return "no prolog";
  XmlReader reader = {.at = text + sizeof prolog - 1};
  xml_element(&reader);
  if (!reader.wrong && strcmp(reader.at, "\n") != 0) reader.wrong = "something after the root";
  return reader.wrong;
}

#endif
