#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/reader.h"

const char *dflash_case_name_fault(const char *name) {
  size_t size = strlen(name);
  if (size == 0) return "empty";
  if (size > DFLASH_CASE_NAME_MAX) return "longer than 200 bytes";
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return "a name that means a place";
  for (size_t i = 0; i < size; i++) {
    if (name[i] == '/') return "with a slash";
    if ((unsigned char)name[i] < 32 || name[i] == 127) return "with a control character";
  }
  return NULL;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static herr_t keep_name(hid_t group, const char *name, const H5L_info_t *link, void *context) {
  (void)group, (void)link;
  DflashGolden *golden = context;
  char *copy = strdup(name);
  if (!copy) return -1;
  golden->cases[golden->case_count++] = copy;
  return 0;
}

static DflashStatus list_names(DflashGolden *golden, const DflashNode *node, DflashError *error) {
  H5G_info_t info;
  hsize_t at = 0;
  if (H5Gget_info(node->id, &info) < 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be listed", node->path);
  if (info.nlinks > golden->mapping.size)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %llu cases in a file of %llu bytes", node->path,
                            (unsigned long long)info.nlinks, (unsigned long long)golden->mapping.size);
  golden->cases = calloc(info.nlinks + 1, sizeof *golden->cases);
  if (!golden->cases) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", node->path);
  if (H5Literate(node->id, H5_INDEX_NAME, H5_ITER_NATIVE, &at, keep_name, golden) < 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be listed", node->path);
  return DFLASH_OK;
}

static DflashStatus check_case_group(const DflashNode *cases, const char *name, DflashError *error) {
  DflashNode node;
  const char *fault = dflash_case_name_fault(name);
  if (fault)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: case name \"%.64s\" is %s", cases->path, name, fault);
  DflashStatus status = dflash_node_open(cases, name, DFLASH_NODE_GROUP, &node, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_read_case_names(DflashGolden *golden, DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_node_open(&golden->root, "cases", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = list_names(golden, &node, error);
  if (status == DFLASH_OK) qsort(golden->cases, (size_t)golden->case_count, sizeof *golden->cases, compare_names);
  for (int64_t i = 0; i < golden->case_count && status == DFLASH_OK; i++)
    status = check_case_group(&node, golden->cases[i], error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus read_attributes(const DflashNode *node, DflashCase *c, DflashError *error) {
  int64_t exact = 0;
  DflashStatus status = dflash_attribute_i64(node, "anchor_pos", &c->anchor_pos, error);
  if (status == DFLASH_OK) status = dflash_attribute_i64(node, "anchor_token", &c->anchor_token, error);
  if (status == DFLASH_OK) status = dflash_attribute_i64(node, "rows", &c->sizes.rows, error);
  if (status == DFLASH_OK) status = dflash_attribute_i64(node, "n_draft", &c->sizes.n_draft, error);
  if (status == DFLASH_OK) status = dflash_attribute_i64(node, "head_width", &c->sizes.head_width, error);
  if (status == DFLASH_OK && dflash_attribute_has(node, "exact"))
    status = dflash_attribute_i64(node, "exact", &exact, error);
  if (status == DFLASH_OK && exact != 0 && exact != 1)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: attribute exact is %lld, expected 0 or 1", node->path,
                              (long long)exact);
  c->exact = exact == 1;
  return status;
}

static DflashStatus read_context(const DflashGolden *golden, const DflashNode *node, DflashCase *c,
                                 DflashError *error) {
  const DflashWanted ops = {DFLASH_ELEMENT_OPS, 1, {DFLASH_ANY}};
  const DflashWanted taps = {DFLASH_ELEMENT_F32, 2, {DFLASH_ANY, dflash_geometry_tap_width(&golden->geometry)}};
  DflashNode context;
  DflashData data;
  DflashStatus status = dflash_node_open(node, "context", DFLASH_NODE_GROUP, &context, error);
  if (status == DFLASH_OK) status = dflash_dataset_read(&context, "ops", &ops, &golden->mapping, &data, error);
  if (status == DFLASH_OK) {
    c->ops = data.data;
    c->op_count = data.shape[0];
    status = dflash_dataset_read(&context, "taps", &taps, &golden->mapping, &data, error);
  }
  if (status == DFLASH_OK) {
    c->taps = data.data;
    c->taps_owned = data.owned;
    c->tap_rows = data.shape[0];
  }
  dflash_node_close(&context);
  return status;
}

static DflashStatus read_state(const DflashNode *node, DflashCase *c, DflashError *error) {
  DflashNode state;
  DflashStatus status = dflash_node_open(node, "context_state", DFLASH_NODE_GROUP, &state, error);
  if (status == DFLASH_OK) status = dflash_attribute_i64(&state, "first", &c->context_first, error);
  if (status == DFLASH_OK) status = dflash_attribute_i64(&state, "len", &c->sizes.context_len, error);
  dflash_node_close(&state);
  return status;
}

static DflashStatus read_embeddings(const DflashGolden *golden, const DflashNode *node, DflashCase *c,
                                    DflashError *error) {
  const DflashWanted wanted = {DFLASH_ELEMENT_F32, 2, {c->sizes.rows, golden->geometry.hidden}};
  DflashNode input;
  DflashData data;
  DflashStatus status = dflash_node_open(node, "input", DFLASH_NODE_GROUP, &input, error);
  if (status == DFLASH_OK) status = dflash_dataset_read(&input, "h", &wanted, &golden->mapping, &data, error);
  if (status == DFLASH_OK) {
    c->h = data.data;
    c->h_owned = data.owned;
  }
  dflash_node_close(&input);
  return status;
}

/* -1: no push at all. */
static int64_t last_push(const DflashCase *c) {
  int64_t i = c->op_count - 1;
  while (i >= 0 && c->ops[i].op != DFLASH_OP_PUSH) i--;
  return i;
}

bool dflash_case_has_push(const DflashCase *c) { return last_push(c) >= 0; }

/* Ranges and operations against each other, before anything is measured by them; the taps' values come later. */
static DflashStatus check_numbers(const DflashCase *c, const DflashGeometry *geometry, DflashError *error) {
  DflashCase numbers = *c;
  numbers.taps = NULL;
  return dflash_case_check(&numbers, geometry, error);
}

DflashStatus dflash_read_case_inputs(const DflashGolden *golden, const DflashNode *node, DflashCase *c,
                                     DflashError *error) {
  DflashStatus status = read_attributes(node, c, error);
  if (status == DFLASH_OK) status = read_context(golden, node, c, error);
  if (status == DFLASH_OK) status = read_state(node, c, error);
  if (status != DFLASH_OK) return status;
  int64_t push = last_push(c);
  c->sizes.push_rows = push < 0 ? 0 : c->ops[push].n_rows;
  status = check_numbers(c, &golden->geometry, error);
  return status == DFLASH_OK ? read_embeddings(golden, node, c, error) : status;
}
