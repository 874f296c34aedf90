#include "load/candidate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/candidate_parts.h"
#include "load/reader.h"

static const char *const text_names[DFLASH_CANDIDATE_TEXTS] = {"engine", "profile", "inputs_hash"};

static herr_t keep_name(hid_t group, const char *name, const H5L_info_t *link, void *context) {
  (void)group, (void)link;
  DflashNodeNames *names = context;
  char *copy = strdup(name);
  if (copy == NULL) return -1;
  names->at[names->count++] = copy;
  return 0;
}

DflashStatus dflash_node_names(const DflashNode *node, uint64_t file_size, DflashNodeNames *names, DflashError *error) {
  H5G_info_t info;
  hsize_t at = 0;
  *names = (DflashNodeNames){0};
  if (H5Gget_info(node->id, &info) < 0 || info.nlinks > file_size)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be listed", dflash_node_path(node));
  names->at = calloc(info.nlinks + 1, sizeof *names->at);
  if (names->at == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for names", dflash_node_path(node));
  if (H5Literate(node->id, H5_INDEX_NAME, H5_ITER_INC, &at, keep_name, names) >= 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be listed", dflash_node_path(node));
}

void dflash_node_names_close(DflashNodeNames *names) {
  for (int64_t i = 0; i < names->count; i++) free(names->at[i]);
  free(names->at);
  *names = (DflashNodeNames){0};
}

/* A golden's own values may stand on this side too. */
static DflashStatus check_format(const DflashNode *root, DflashError *error) {
  char *format;
  if (!dflash_attribute_has(root, "format")) return DFLASH_OK;
  DflashStatus status = dflash_attribute_text(root, "format", &format, error);
  if (status != DFLASH_OK) return status;
  if (strcmp(format, DFLASH_CANDIDATE_FORMAT) != 0 && strcmp(format, DFLASH_GOLDEN_FORMAT) != 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA,
                              "/: attribute format is \"%.64s\"; valid: \"" DFLASH_CANDIDATE_FORMAT
                              "\", \"" DFLASH_GOLDEN_FORMAT "\" or none",
                              format);
  free(format);
  return status;
}

static DflashStatus read_header(DflashCandidate *candidate, DflashError *error) {
  const DflashNode *root = &candidate->file.root;
  DflashStatus status = check_format(root, error);
  for (int i = 0; status == DFLASH_OK && i < DFLASH_CANDIDATE_TEXTS; i++)
    if (dflash_attribute_has(root, text_names[i]))
      status = dflash_attribute_text(root, text_names[i], &candidate->texts[i], error);
  if (status != DFLASH_OK) return status;
  DflashNode cases;
  if (!dflash_node_has(root, "cases"))
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "holds no /cases: no values to compare (docs/compare.md shows how to write them)");
  status = dflash_node_open(root, "cases", DFLASH_NODE_GROUP, &cases, error);
  if (status == DFLASH_OK) status = dflash_node_names(&cases, candidate->file.mapping.size, &candidate->cases, error);
  dflash_node_close(&cases);
  return status;
}

DflashStatus dflash_candidate_open(const char *path, DflashCandidate **candidate, DflashError *error) {
  *candidate = NULL;
  DflashCandidate *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", path);
  DflashStatus status = dflash_h5_file_open(path, &opened->file, error);
  if (status == DFLASH_OK && read_header(opened, error) != DFLASH_OK) status = dflash_error_prefix(error, "%s", path);
  if (status == DFLASH_OK)
    *candidate = opened;
  else
    dflash_candidate_close(opened);
  return status;
}

void dflash_candidate_close(DflashCandidate *candidate) {
  if (candidate == NULL) return;
  for (int i = 0; i < DFLASH_CANDIDATE_TEXTS; i++) free(candidate->texts[i]);
  dflash_node_names_close(&candidate->cases);
  dflash_h5_file_close(&candidate->file);
  free(candidate);
}

const char *dflash_candidate_text(const DflashCandidate *candidate, const char *name) {
  for (int i = 0; i < DFLASH_CANDIDATE_TEXTS; i++)
    if (strcmp(text_names[i], name) == 0) return candidate->texts[i] != NULL ? candidate->texts[i] : "";
  return "";
}

int64_t dflash_candidate_case_count(const DflashCandidate *candidate) { return candidate->cases.count; }

const char *dflash_candidate_case_name(const DflashCandidate *candidate, int64_t index) {
  return candidate->cases.at[index];
}

static void close_values(DflashCandidateValue *values, int64_t count) {
  for (int64_t i = 0; values != NULL && i < count; i++) {
    free(values[i].data);
    free(values[i].rows);
  }
  free(values);
}

void dflash_candidate_case_close(DflashCandidateCase *c) {
  close_values(c->stages, DFLASH_STAGE_COUNT * c->layers);
  close_values(c->held_k, c->layers);
  close_values(c->held_v, c->layers);
  free(c->chosen);
  free(c->plain);
  free(c->candidates);
  free(c->scores);
  *c = (DflashCandidateCase){0};
}
