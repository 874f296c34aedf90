/* For tests of golden files: copies of the fixtures, changed through HDF5, and what must come of them. */
#ifndef DFLASH_TESTS_GOLDEN_COPY_H
#define DFLASH_TESTS_GOLDEN_COPY_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/file.h"
#include "load/golden.h"
#include "load/h5.h"

#define FIXTURE(name) DFLASH_GOLDEN_FOLDER "/" name ".h5"

extern const char *const all_fixtures[6];

/* A scratch path of this process. */
const char *scratch_path(const char *name, char path[512]);
void copy_file(const char *from, const char *to);

DflashGolden *open_golden(const char *path); /* with values checked; fails the test otherwise */
void load_case(DflashGolden *golden, DflashCase *c);

/* Writes everything that `from` holds, with case `c` under its name, and commits. */
DflashStatus write_copy(DflashGolden *from, const DflashCase *c, const char *path, DflashGoldenHashes *hashes,
                        DflashError *error);

/* Error scales whose values tell where they belong: count of them, and for some stages of a case. */
float *made_scale(int64_t count, float seed);
void add_scales(DflashCase *c, const DflashGeometry *geometry);

/* Opens the golden and every case; the first failure's status, its line in *error. Nothing stays open in HDF5. */
DflashStatus read_everything(const char *path, DflashError *error);

/* ---- changes ---- */

/* A changed copy of a fixture: open for the change, then close. */
hid_t open_copy(const char *fixture, const char *path);
void set_i64(hid_t file, const char *object, const char *name, int64_t value);
void set_f64(hid_t file, const char *object, const char *name, double value);
void set_list(hid_t file, const char *object, const char *name, const int64_t *values, int count);
void set_text(hid_t file, const char *object, const char *name, const char *text);
void drop_attribute(hid_t file, const char *object, const char *name);
/* Replaces (or makes) a dataset; list may be H5P_DEFAULT; data NULL: nothing is written. */
void put_dataset(hid_t file, const char *path, hid_t type, int rank, const hsize_t *shape, hid_t list,
                 hid_t memory_type, const void *data);
/* Replaces a dataset by the same values in another type and layout; its attributes are lost. */
void remake_f32(hid_t file, const char *path, hid_t type, hid_t list);
/* Writes one value into place. */
void poke_f32(hid_t file, const char *path, size_t index, float value);

#endif
