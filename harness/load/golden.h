/* Golden files: HDF5 in, HDF5 out. The only module that knows HDF5.
 *
 * HDF5 1.10 itself can crash or hang on damaged metadata, so a golden from outside is opened in a child
 * process with a time limit (run/isolate.h); this module does not fork.
 */
#ifndef DFLASH_LOAD_GOLDEN_H
#define DFLASH_LOAD_GOLDEN_H

#include "model/case.h"
#include "model/router.h"
#include "model/weights.h"

/* Bytes of a case's name; no slash and no control character in it, and not "." or "..". */
#define DFLASH_CASE_NAME_MAX 200

typedef struct DflashGolden DflashGolden;

/* Reads structure, geometry and the list of cases; weights are mapped where HDF5 stores them contiguously and
 * aligned, read otherwise. Every attribute, type, shape, storage and byte count is checked; weight values are
 * checked for finiteness only when check_values is set. */
DflashStatus dflash_golden_open(const char *path, int check_values, DflashGolden **golden, DflashError *error);
void dflash_golden_close(DflashGolden *golden);

const DflashGeometry *dflash_golden_geometry(const DflashGolden *golden);
const DflashWeights *dflash_golden_weights(const DflashGolden *golden); /* with head and the file's inv_freq */
/* Lets the pages of mapped weights go, once a backend holds its own form (they can be read again). */
void dflash_golden_release_weights(DflashGolden *golden);
/* Text attributes of the root (generator, note, recipe, inputs_hash, values_hash, scales_hash, trunk_hash64); "" when
 * absent. */
const char *dflash_golden_attribute(const DflashGolden *golden, const char *name);
const DflashRouter *dflash_golden_router(const DflashGolden *golden); /* NULL when absent */
/* Rows [count, hidden] and the stored margins beside the router; free() releases both. No router or no rows: count 0
 * and NULL. */
DflashStatus dflash_golden_router_rows(const DflashGolden *golden, int64_t *count, float **rows, double **margins,
                                       DflashError *error);

int64_t dflash_golden_case_count(const DflashGolden *golden);
const char *dflash_golden_case_name(const DflashGolden *golden, int64_t index); /* in name order */

/* Attributes, operations, taps, h, context_state, every stage, error scales when present, output; checked by
 * dflash_case_check. What is mapped belongs to the golden, which must outlive the case. */
DflashStatus dflash_golden_case(DflashGolden *golden, int64_t index, DflashCase *c, DflashError *error);

/* Hex digits of SHA-256 over geometry, weights and cases' inputs; over golden values; over error scales. */
typedef struct DflashGoldenHashes {
  char inputs[65], values[65], scales[65];
} DflashGoldenHashes;

/* All hashes of the file's contents, whatever is stored. */
DflashStatus dflash_golden_hashes(DflashGolden *golden, DflashGoldenHashes *hashes, DflashError *error);
/* Computes stored hashes again from the file's contents. Results: 1 match, 0 mismatch, -1 not stored. The scales'
 * reads the cases alone. */
DflashStatus dflash_golden_check_hashes(DflashGolden *golden, int *inputs, int *values, DflashError *error);
DflashStatus dflash_golden_check_scales_hash(DflashGolden *golden, int *scales, DflashError *error);

/* ---- writing ---- */

typedef struct DflashGoldenWriter DflashGoldenWriter;

/* Writes beside the path; commit computes the hashes, closes and renames. Big datasets are contiguous and
 * 64-byte aligned. Nothing depends on time or machine: equal calls give equal bytes. */
DflashStatus dflash_golden_create(const char *path, const DflashGeometry *geometry, const float *inv_freq,
                                  DflashGoldenWriter **writer, DflashError *error);
/* generator, note, recipe or trunk_hash64; each once. */
DflashStatus dflash_golden_write_attribute(DflashGoldenWriter *writer, const char *name, const char *text,
                                           DflashError *error);
/* name: an entry's name, or "/target/head". */
DflashStatus dflash_golden_write_weight(DflashGoldenWriter *writer, const char *name, const DflashTensor *tensor,
                                        DflashError *error);
DflashStatus dflash_golden_write_router(DflashGoldenWriter *writer, const DflashRouter *router, int64_t count,
                                        const float *rows, const double *margins, DflashError *error);
DflashStatus dflash_golden_write_case(DflashGoldenWriter *writer, const DflashCase *c, DflashError *error);
/* Releases the writer, also on failure. */
DflashStatus dflash_golden_commit(DflashGoldenWriter *writer, DflashGoldenHashes *hashes, DflashError *error);
void dflash_golden_abort(DflashGoldenWriter *writer);

#endif
