#include "load/h5.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

void dflash_h5_quiet(void) { H5Eset_auto2(H5E_DEFAULT, NULL, NULL); }

static herr_t keep_text(unsigned number, const H5E_error2_t *entry, void *context) {
  if (number == 0 && entry->desc) snprintf(context, 160, "%s", entry->desc);
  return 0;
}

const char *dflash_h5_reason(char text[160]) {
  snprintf(text, 160, "no reason given");
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_text, text);
  return text;
}

void dflash_h5_close(hid_t id) {
  if (id >= 0) H5Idec_ref(id);
}

/* A float type holds infinities and NaN as they are: nothing is lost. */
static H5T_conv_ret_t refuse_clipping(H5T_conv_except_t kind, hid_t from, hid_t to, void *from_value, void *to_value,
                                      void *context) {
  (void)from, (void)from_value, (void)to_value, (void)context;
  bool nonfinite = kind == H5T_CONV_EXCEPT_PINF || kind == H5T_CONV_EXCEPT_NINF || kind == H5T_CONV_EXCEPT_NAN;
  return nonfinite && H5Tget_class(to) == H5T_FLOAT ? H5T_CONV_UNHANDLED : H5T_CONV_ABORT;
}

hid_t dflash_h5_strict_transfer(void) {
  hid_t list = H5Pcreate(H5P_DATASET_XFER);
  if (list >= 0) H5Pset_type_conv_cb(list, refuse_clipping, NULL);
  return list;
}

static const char *class_name(H5T_class_t kind) {
  switch (kind) {
  case H5T_STRING:
    return "string";
  case H5T_COMPOUND:
    return "compound";
  case H5T_ENUM:
    return "enumeration";
  default:
    return "another type";
  }
}

const char *dflash_h5_type_name(hid_t type, char text[48]) {
  H5T_class_t kind = H5Tget_class(type);
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) return class_name(kind);
  const char *letter = kind == H5T_FLOAT ? "f" : H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "i";
  const char *order = H5Tget_order(type) == H5T_ORDER_BE ? " big-endian" : "";
  snprintf(text, 48, "%s%zu%s", letter, 8 * H5Tget_size(type), order);
  return text;
}

const char *dflash_node_path(const DflashNode *node) { return node->path[0] ? node->path : "/"; }

DflashStatus dflash_node_root(hid_t file, DflashNode *root, DflashError *error) {
  char reason[160];
  root->path[0] = '\0';
  root->id = H5Gopen2(file, "/", H5P_DEFAULT);
  if (root->id >= 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "/: cannot be opened: %s", dflash_h5_reason(reason));
}

void dflash_node_close(DflashNode *node) {
  dflash_h5_close(node->id);
  node->id = H5I_INVALID_HID;
}

bool dflash_node_has(const DflashNode *parent, const char *name) {
  return H5Lexists(parent->id, name, H5P_DEFAULT) > 0;
}

static DflashStatus check_link(const DflashNode *parent, const char *name, const DflashNode *node, const char *kind,
                               DflashError *error) {
  H5L_info_t link;
  if (!dflash_node_has(parent, name))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: missing, expected a %s", node->path, kind);
  if (H5Lget_info(parent->id, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: a soft or external link, expected a %s of this file",
                            node->path, kind);
  return DFLASH_OK;
}

DflashStatus dflash_node_open(const DflashNode *parent, const char *name, int kind, DflashNode *node,
                              DflashError *error) {
  const char *label = kind == DFLASH_NODE_GROUP ? "group" : "dataset";
  char reason[160];
  node->id = H5I_INVALID_HID;
  int length = snprintf(node->path, sizeof node->path, "%s/%s", parent->path, name);
  if (length < 0 || (size_t)length >= sizeof node->path)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: path too long", node->path);
  DflashStatus status = check_link(parent, name, node, label, error);
  if (status != DFLASH_OK) return status;
  node->id = H5Oopen(parent->id, name, H5P_DEFAULT);
  if (node->id < 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be opened: %s", node->path,
                            dflash_h5_reason(reason));
  if (H5Iget_type(node->id) == (kind == DFLASH_NODE_GROUP ? H5I_GROUP : H5I_DATASET)) return DFLASH_OK;
  dflash_node_close(node);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: another kind of object, expected a %s", node->path, label);
}
