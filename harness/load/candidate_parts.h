/* The parts of an open candidate, between the files of this folder. */
#ifndef DFLASH_LOAD_CANDIDATE_PARTS_H
#define DFLASH_LOAD_CANDIDATE_PARTS_H

#include "load/candidate.h"
#include "load/h5_file.h"

enum { DFLASH_CANDIDATE_TEXTS = 3 };

/* The links of a group, in name order. */
typedef struct DflashNodeNames {
  char **at; /* owned */
  int64_t count;
} DflashNodeNames;

/* What it allocates is released by close, also after a failure. */
DflashStatus dflash_node_names(const DflashNode *node, uint64_t file_size, DflashNodeNames *names, DflashError *error);
void dflash_node_names_close(DflashNodeNames *names);

struct DflashCandidate {
  DflashH5File file;
  char *texts[DFLASH_CANDIDATE_TEXTS]; /* NULL when absent */
  DflashNodeNames cases;
};

/* One dataset of values: type, shape, rows. */
DflashStatus dflash_candidate_value(const DflashCandidate *candidate, const DflashNode *parent, const char *name,
                                    const DflashCandidateShape *shape, DflashCandidateValue *value, DflashError *error);

#endif
