/* Files as an engine would dump them, written by HDF5 alone: c.h5, from the golden t.h5 of the scratch folder. */
#ifndef DFLASH_TESTS_CANDIDATE_FILE_H
#define DFLASH_TESTS_CANDIDATE_FILE_H

#include "program.h"

#include <hdf5.h>

enum { CANDIDATE_MOST = 1 << 16 };

/* A golden's dataset, widened; its shape comes back. */
typedef struct CandidateValues {
  float data[CANDIDATE_MOST];
  int rank;
  hsize_t shape[4], count;
} CandidateValues;

extern CandidateValues candidate_golden; /* what was read last */

void candidate_read_golden(const char *path);
hid_t candidate_create(void); /* an empty c.h5, open */
void candidate_put_text(hid_t object, const char *name, const char *text);
void candidate_put_rows(hid_t object, const int64_t *rows, hsize_t count);
/* An open dataset of the file. */
hid_t candidate_put(hid_t file, const char *path, hid_t type, hid_t memory, int rank, const hsize_t *shape,
                    const void *data);
hid_t candidate_put_f32(hid_t file, const char *path, int rank, const hsize_t *shape); /* of candidate_golden */
void candidate_copy_stage(hid_t file, const char *path); /* the golden's stage, as it is */

#endif
