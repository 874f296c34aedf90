/* Text as XML 1.0 allows it. Internal to store. */
#ifndef DFLASH_STORE_XML_H
#define DFLASH_STORE_XML_H

#include "base/text.h"

/* Appends any bytes as character data: markup escaped, what XML cannot hold replaced by U+FFFD. */
void dflash_xml_text(DflashText *out, const char *text);

/* Appends ` name="value"`; tabs and line ends of the value become character references. */
void dflash_xml_attribute(DflashText *out, const char *name, const char *value);

#endif
