/* The parts of an open golden, between the files of this folder. */
#ifndef DFLASH_LOAD_READER_H
#define DFLASH_LOAD_READER_H

#include "load/dataset.h"
#include "load/golden.h"

#define DFLASH_GOLDEN_FORMAT "dflash-golden"
#define DFLASH_GOLDEN_VERSION 1

enum {
  DFLASH_TEXT_GENERATOR,
  DFLASH_TEXT_NOTE,
  DFLASH_TEXT_RECIPE,
  DFLASH_TEXT_INPUTS,
  DFLASH_TEXT_VALUES,
  DFLASH_TEXT_SCALES,
  DFLASH_TEXT_TRUNK,
  DFLASH_TEXT_COUNT
};
extern const char *const dflash_golden_texts[DFLASH_TEXT_COUNT];

struct DflashGolden {
  char *path;
  hid_t file;
  DflashNode root;
  DflashMapping mapping;
  DflashGeometry geometry;
  DflashWeightSet set;
  DflashRouter router;
  char *texts[DFLASH_TEXT_COUNT]; /* NULL when absent */
  char **cases;                   /* in name order */
  int64_t case_count;
  void **owned; /* tensors that could not be mapped, one place each */
};

/* Opens a golden whose messages show another path: the one that it will have. */
DflashStatus dflash_golden_open_as(const char *path, const char *shown, int check_values, DflashGolden **golden,
                                   DflashError *error);

/* Each leaves what it built in the golden, whose close releases it. */
DflashStatus dflash_read_header(DflashGolden *golden, DflashError *error);
DflashStatus dflash_read_geometry(DflashGolden *golden, DflashError *error);
/* The attributes alone, checked; geometry comes zeroed. */
DflashStatus dflash_read_geometry_fields(const DflashNode *node, DflashGeometry *geometry, DflashError *error);
DflashStatus dflash_read_weights(DflashGolden *golden, int check_values, DflashError *error);
DflashStatus dflash_read_router(DflashGolden *golden, DflashError *error);
DflashStatus dflash_read_case_names(DflashGolden *golden, DflashError *error);

/* Into a case that dflash_case_open made: attributes, operations, inputs and sizes; then everything else. */
DflashStatus dflash_read_case_inputs(const DflashGolden *golden, const DflashNode *node, DflashCase *c,
                                     DflashError *error);
DflashStatus dflash_read_case_values(const DflashGolden *golden, const DflashNode *node, DflashCase *c,
                                     DflashError *error);

/* NULL when the name can stand in a path; else why not. */
const char *dflash_case_name_fault(const char *name);

/* Whether the stages of the last push are there: the case has a push, which may have had no rows. */
bool dflash_case_has_push(const DflashCase *c);

#endif
