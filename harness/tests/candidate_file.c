#include "candidate_file.h"

CandidateValues candidate_golden;

void candidate_read_golden(const char *path) {
  hid_t file = H5Fopen("t.h5", H5F_ACC_RDONLY, H5P_DEFAULT), data = H5Dopen2(file, path, H5P_DEFAULT);
  assert_true(data >= 0);
  hid_t space = H5Dget_space(data);
  candidate_golden.rank = H5Sget_simple_extent_dims(space, candidate_golden.shape, NULL);
  candidate_golden.count = (hsize_t)H5Sget_simple_extent_npoints(space);
  assert_true(candidate_golden.count <= CANDIDATE_MOST);
  assert_true(H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, candidate_golden.data) >= 0);
  H5Sclose(space);
  H5Dclose(data);
  H5Fclose(file);
}

hid_t candidate_create(void) {
  hid_t file = H5Fcreate("c.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(file >= 0);
  return file;
}

void candidate_put_text(hid_t object, const char *name, const char *text) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, strlen(text) + 1);
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attribute, type, text) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

void candidate_put_rows(hid_t object, const int64_t *rows, hsize_t count) {
  hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t attribute = H5Acreate2(object, "rows", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, rows) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
}

/* An open dataset of the file. */
hid_t candidate_put(hid_t file, const char *path, hid_t type, hid_t memory, int rank, const hsize_t *shape,
                    const void *data) {
  hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(rank, shape, NULL);
  H5Pset_create_intermediate_group(links, 1);
  hid_t dataset = H5Dcreate2(file, path, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(dataset >= 0 && H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Sclose(space);
  H5Pclose(links);
  return dataset;
}

hid_t candidate_put_f32(hid_t file, const char *path, int rank, const hsize_t *shape) {
  return candidate_put(file, path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, shape, candidate_golden.data);
}

/* The golden's stage in the file, as it is. */
void candidate_copy_stage(hid_t file, const char *path) {
  candidate_read_golden(path);
  H5Dclose(candidate_put_f32(file, path, candidate_golden.rank, candidate_golden.shape));
}
