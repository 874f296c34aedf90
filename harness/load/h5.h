/* HDF5 handles as this module uses them: objects opened one link at a time, with their path for messages.
 *
 * Only hard links are followed: a link into another file, or one that points nowhere, is refused.
 */
#ifndef DFLASH_LOAD_H5_H
#define DFLASH_LOAD_H5_H

#include <stdbool.h>

#define H5_USE_110_API 1
#include <hdf5.h>

#include "dflash/geometry.h"
#include "dflash/status.h"

enum { DFLASH_NODE_GROUP, DFLASH_NODE_DATASET };

typedef struct DflashNode {
  hid_t id;       /* negative when closed */
  char path[384]; /* "" for the root */
} DflashNode;

/* HDF5 prints nothing by itself on this thread from here on. */
void dflash_h5_quiet(void);
/* The most specific text that HDF5 left about the last call that failed. */
const char *dflash_h5_reason(char text[160]);
/* Any kind of id but a file's; negative ones are ignored. */
void dflash_h5_close(hid_t id);
/* Fails the conversion of a value that the wanted type cannot hold, where HDF5 would clip it. */
hid_t dflash_h5_strict_transfer(void);
/* "f32", "i64", "u16 big-endian", "string", "compound". */
const char *dflash_h5_type_name(hid_t type, char text[48]);

/* Opens the root of a file or a child; both leave a closed node on failure. Missing, a link of another kind and
 * another kind of object are DFLASH_INVALID_DATA. */
DflashStatus dflash_node_root(hid_t file, DflashNode *root, DflashError *error);
DflashStatus dflash_node_open(const DflashNode *parent, const char *name, int kind, DflashNode *node,
                              DflashError *error);
bool dflash_node_has(const DflashNode *parent, const char *name);
void dflash_node_close(DflashNode *node);
/* The path for messages: "/" for the root. */
const char *dflash_node_path(const DflashNode *node);

/* ---- attributes: scalars or lists, of any integer width, text of fixed or variable length ---- */

bool dflash_attribute_has(const DflashNode *node, const char *name);
DflashStatus dflash_attribute_i64(const DflashNode *node, const char *name, int64_t *value, DflashError *error);
DflashStatus dflash_attribute_f64(const DflashNode *node, const char *name, double *value, DflashError *error);
/* A list of exactly `count` integers. */
DflashStatus dflash_attribute_integers(const DflashNode *node, const char *name, int64_t *values, int64_t count,
                                       DflashError *error);
DflashStatus dflash_attribute_list(const DflashNode *node, const char *name, DflashList *list, DflashError *error);
/* *text is released with free(). */
DflashStatus dflash_attribute_text(const DflashNode *node, const char *name, char **text, DflashError *error);

#endif
