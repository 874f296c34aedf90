/* Backends that are wrong on purpose: the reference with one thing changed. Each file is one of them. */
#ifndef DFLASH_TESTS_PLUGIN_H
#define DFLASH_TESTS_PLUGIN_H

#include "backends/reference/reference.h"

DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

/* The reference's table under another name. */
DflashBackend plugin_reference(const char *name);

/* The same, with attn.mix/0 damaged wherever a caller receives it: after stage() and after read_stage(). */
DflashBackend plugin_stage(const char *name);

/* The damage, defined by the plug-in. before: the element that the caller had in the value's last place. */
void plugin_damage(float *value, int64_t count, float before);

#endif
