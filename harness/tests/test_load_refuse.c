/* Every kind of damage that HDF5 itself accepts: one line that names the place, and nothing left open. */
#include "golden_copy.h"

#include <unistd.h>

#define TINY FIXTURE("tiny-f32")
#define SIDECAR FIXTURE("sidecar-rewind")
#define OPERATIONS FIXTURE("operations")

typedef struct Damage {
  const char *name, *fixture;
  void (*change)(hid_t file);
  const char *says; /* a part of the message */
} Damage;

static void put_zeros(hid_t file, const char *path, hid_t type, int rank, const hsize_t *shape) {
  size_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  void *zeros = calloc(count + 1, 8);
  assert_non_null(zeros);
  put_dataset(file, path, type, rank, shape, H5P_DEFAULT, type, zeros);
  free(zeros);
}

static void unlink_object(hid_t file, const char *path) { assert_true(H5Ldelete(file, path, H5P_DEFAULT) >= 0); }

static void move_object(hid_t file, const char *from, const char *to) {
  assert_true(H5Lmove(file, from, file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* ---- root and geometry ---- */
static void version_2(hid_t file) { set_i64(file, "/", "version", 2); }
static void version_missing(hid_t file) { drop_attribute(file, "/", "version"); }
static void format_other(hid_t file) { set_text(file, "/", "format", "other"); }
static void format_number(hid_t file) { set_i64(file, "/", "format", 1); }
static void note_number(hid_t file) { set_i64(file, "/", "note", 1); }
static void hidden_missing(hid_t file) { drop_attribute(file, "/geometry", "hidden"); }
static void hidden_float(hid_t file) { set_f64(file, "/geometry", "hidden", 64); }
static void hidden_two(hid_t file) { set_list(file, "/geometry", "hidden", (const int64_t[]){64, 64}, 2); }
static void hidden_zero(hid_t file) { set_i64(file, "/geometry", "hidden", 0); }
static void hidden_huge(hid_t file) { set_i64(file, "/geometry", "hidden", INT64_MAX / 16 * 16); }
static void head_dim_huge(hid_t file) { set_i64(file, "/geometry", "head_dim", (int64_t)1 << 40); }
static void heads_odd(hid_t file) { set_i64(file, "/geometry", "heads", 3); }
static void eps_integer(hid_t file) { set_i64(file, "/geometry", "eps", 1); }
static void eps_negative(hid_t file) { set_f64(file, "/geometry", "eps", -1); }
static void windows_short(hid_t file) { set_list(file, "/geometry", "windows", (const int64_t[]){4, 4}, 2); }
static void taps_long(hid_t file) {
  int64_t taps[300] = {0};
  set_list(file, "/geometry", "taps", taps, 300);
}
static void taps_empty(hid_t file) { set_list(file, "/geometry", "taps", NULL, 0); }
static void geometry_missing(hid_t file) { unlink_object(file, "/geometry"); }
static void inv_freq_long(hid_t file) { put_zeros(file, "/geometry/inv_freq", H5T_IEEE_F32LE, 1, (hsize_t[]){9}); }
static void inv_freq_nan(hid_t file) { poke_f32(file, "/geometry/inv_freq", 2, NAN); }

/* ---- weights ---- */
static void weight_missing(hid_t file) { unlink_object(file, "/weights/layers.1.mlp.up_proj.weight"); }
static void weight_group(hid_t file) {
  unlink_object(file, "/weights/fc.weight");
  H5Gclose(H5Gcreate2(file, "/weights/fc.weight", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void weight_f64(hid_t file) {
  put_zeros(file, "/weights/norm.weight", H5T_IEEE_F64LE, 1, (hsize_t[]){64});
  set_text(file, "/weights/norm.weight", "storage", "f32");
  set_list(file, "/weights/norm.weight", "shape", (const int64_t[]){64}, 1);
}
static void weight_storage_unknown(hid_t file) { set_text(file, "/weights/fc.weight", "storage", "q3"); }
static void weight_storage_missing(hid_t file) { drop_attribute(file, "/weights/fc.weight", "storage"); }
static void weight_storage_lies(hid_t file) { set_text(file, "/weights/fc.weight", "storage", "f16"); }
static void weight_shape_swapped(hid_t file) {
  set_list(file, "/weights/fc.weight", "shape", (const int64_t[]){192, 64}, 2);
}
static void weight_shape_empty(hid_t file) { set_list(file, "/weights/fc.weight", "shape", NULL, 0); }
static void vector_as_f16(hid_t file) {
  put_zeros(file, "/weights/norm.weight", H5T_STD_U16LE, 1, (hsize_t[]){64});
  set_text(file, "/weights/norm.weight", "storage", "f16");
  set_list(file, "/weights/norm.weight", "shape", (const int64_t[]){64}, 1);
}
static void weight_dataset_shape(hid_t file) {
  put_zeros(file, "/weights/norm.weight", H5T_IEEE_F32LE, 1, (hsize_t[]){63});
  set_text(file, "/weights/norm.weight", "storage", "f32");
  set_list(file, "/weights/norm.weight", "shape", (const int64_t[]){64}, 1);
}
static void packed_bytes_short(hid_t file) {
  put_zeros(file, "/weights/fc.weight", H5T_STD_U8LE, 1, (hsize_t[]){264703});
  set_text(file, "/weights/fc.weight", "storage", "q8_2f");
  set_list(file, "/weights/fc.weight", "shape", (const int64_t[]){256, 1024}, 2);
}
static void packed_signed(hid_t file) {
  put_zeros(file, "/weights/fc.weight", H5T_STD_I8LE, 1, (hsize_t[]){264704});
  set_text(file, "/weights/fc.weight", "storage", "q8_2f");
  set_list(file, "/weights/fc.weight", "shape", (const int64_t[]){256, 1024}, 2);
}
static void weight_nan(hid_t file) { poke_f32(file, "/weights/fc.weight", 100, NAN); }
static void head_infinite(hid_t file) { poke_f32(file, "/target/head", 7, -INFINITY); }
static void head_missing(hid_t file) { unlink_object(file, "/target/head"); }
static void a_layer_too_many(hid_t file) {
  put_zeros(file, "/weights/layers.3.mlp_conv.kernel_projection.weight", H5T_IEEE_F32LE, 1, (hsize_t[]){1});
}
static void weight_never_written(hid_t file) {
  put_dataset(file, "/weights/norm.weight", H5T_IEEE_F32LE, 1, (hsize_t[]){64}, H5P_DEFAULT, 0, NULL);
  set_text(file, "/weights/norm.weight", "storage", "f32");
  set_list(file, "/weights/norm.weight", "shape", (const int64_t[]){64}, 1);
}

/* ---- router ---- */
static void router_mean_missing(hid_t file) { unlink_object(file, "/router/chain/mean"); }
static void router_basis_wide(hid_t file) {
  put_zeros(file, "/router/block/basis", H5T_STD_U16LE, 2, (hsize_t[]){3, 65});
}
static void router_rank_zero(hid_t file) {
  put_zeros(file, "/router/block/basis", H5T_STD_U16LE, 2, (hsize_t[]){0, 64});
}
static void router_infinite(hid_t file) {
  uint16_t mean[64] = {[5] = 0x7c00};
  put_dataset(file, "/router/block/mean", H5T_STD_U16LE, 1, (hsize_t[]){64}, H5P_DEFAULT, H5T_NATIVE_UINT16, mean);
}
static void router_margins_short(hid_t file) { put_zeros(file, "/router/margin", H5T_IEEE_F64LE, 1, (hsize_t[]){5}); }

/* ---- cases ---- */
static void cases_missing(hid_t file) { unlink_object(file, "/cases"); }
static void case_dataset(hid_t file) { put_zeros(file, "/cases/flat", H5T_IEEE_F32LE, 1, (hsize_t[]){1}); }
static void case_soft_link(hid_t file) {
  assert_true(H5Lcreate_soft("/cases/main", file, "/cases/again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void case_control_name(hid_t file) { move_object(file, "/cases/main", "/cases/ma\nin"); }
static void anchor_missing(hid_t file) { drop_attribute(file, "/cases/main", "anchor_pos"); }
static void anchor_token_high(hid_t file) { set_i64(file, "/cases/main", "anchor_token", 512); }
static void rows_many(hid_t file) { set_i64(file, "/cases/main", "rows", 9); }
static void rows_any(hid_t file) { set_i64(file, "/cases/main", "rows", -1); }
static void drafts_many(hid_t file) { set_i64(file, "/cases/main", "n_draft", 8); }
static void drafts_any(hid_t file) { set_i64(file, "/cases/main", "n_draft", -1); }
static void head_width_small(hid_t file) { set_i64(file, "/cases/main", "head_width", 3); }
static void exact_two(hid_t file) { set_i64(file, "/cases/main", "exact", 2); }
static void state_len(hid_t file) { set_i64(file, "/cases/main/context_state", "len", 15); }
static void state_len_any(hid_t file) { set_i64(file, "/cases/main/context_state", "len", -1); }
static void taps_narrow(hid_t file) {
  put_zeros(file, "/cases/main/context/taps", H5T_IEEE_F32LE, 2, (hsize_t[]){89, 191});
}
static void taps_short(hid_t file) {
  put_zeros(file, "/cases/main/context/taps", H5T_IEEE_F32LE, 2, (hsize_t[]){88, 192});
}
static void taps_nan(hid_t file) { poke_f32(file, "/cases/main/context/taps", 192 * 3 + 5, NAN); }
static void h_flat(hid_t file) { put_zeros(file, "/cases/main/input/h", H5T_IEEE_F32LE, 1, (hsize_t[]){512}); }
static void h_scalar(hid_t file) { put_zeros(file, "/cases/main/input/h", H5T_IEEE_F32LE, 0, NULL); }
static void h_null(hid_t file) {
  put_dataset(file, "/cases/main/input/h", H5T_IEEE_F32LE, -1, NULL, H5P_DEFAULT, 0, NULL);
}
static void h_deep(hid_t file) {
  put_zeros(file, "/cases/main/input/h", H5T_IEEE_F32LE, 6, (hsize_t[]){8, 64, 1, 1, 1, 1});
}

typedef struct Op {
  int64_t op, pos, first_row, n_rows;
} Op;

static void put_ops(hid_t file, const Op *ops, hsize_t count, int members) {
  static const char *const names[] = {"op", "pos", "first_row", "n_rows"};
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(Op));
  for (int i = 0; i < members; i++) H5Tinsert(type, names[i], (size_t)i * 8, H5T_NATIVE_INT64);
  put_dataset(file, "/cases/main/context/ops", type, 1, &count, H5P_DEFAULT, type, ops);
  H5Tclose(type);
}
static void ops_beyond_taps(hid_t file) { put_ops(file, (const Op[]){{0, 36, 80, 10}}, 1, 4); }
static void ops_negative_rows(hid_t file) { put_ops(file, (const Op[]){{0, 36, 0, -1}}, 1, 4); }
static void ops_unknown(hid_t file) { put_ops(file, (const Op[]){{3, 36, 0, 1}}, 1, 4); }
static void ops_clipped(hid_t file) { put_ops(file, (const Op[]){{(int64_t)1 << 32, 36, 0, 1}}, 1, 4); }
static void ops_short(hid_t file) { put_ops(file, (const Op[]){{0, 36, 0, 1}}, 1, 3); }
static void ops_plain(hid_t file) { put_zeros(file, "/cases/main/context/ops", H5T_STD_I64LE, 1, (hsize_t[]){4}); }
static void ops_float_member(hid_t file) {
  const double values[4] = {0};
  hsize_t one = 1;
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof values);
  H5Tinsert(type, "op", 0, H5T_NATIVE_INT64);
  H5Tinsert(type, "pos", 8, H5T_NATIVE_DOUBLE);
  H5Tinsert(type, "first_row", 16, H5T_NATIVE_INT64);
  H5Tinsert(type, "n_rows", 24, H5T_NATIVE_INT64);
  put_dataset(file, "/cases/main/context/ops", type, 1, &one, H5P_DEFAULT, type, values);
  H5Tclose(type);
}

/* ---- values ---- */
static void stage_missing(hid_t file) { unlink_object(file, "/cases/main/stages/attn.mix/1"); }
static void stage_group_missing(hid_t file) { unlink_object(file, "/cases/main/stages/mlp.gate"); }
static void context_stage_missing(hid_t file) { unlink_object(file, "/cases/main/stages/context.norm"); }
static void stage_flat_heads(hid_t file) {
  put_zeros(file, "/cases/main/stages/attn.q/0", H5T_IEEE_F32LE, 2, (hsize_t[]){8, 64});
}
static void stage_f64(hid_t file) {
  put_zeros(file, "/cases/main/stages/final.norm", H5T_IEEE_F64LE, 2, (hsize_t[]){8, 64});
}
static void stage_integer(hid_t file) {
  put_zeros(file, "/cases/main/stages/final.norm", H5T_STD_I32LE, 2, (hsize_t[]){8, 64});
}
static void stage_layer_extra(hid_t file) {
  put_zeros(file, "/cases/main/stages/mlp.up/2", H5T_IEEE_F32LE, 2, (hsize_t[]){8, 96});
}
static void stage_with_rows_after_empty_push(hid_t file) {
  put_zeros(file, "/cases/main/stages/context.fc", H5T_IEEE_F32LE, 2, (hsize_t[]){9, 64});
}
static void held_short(hid_t file) {
  put_zeros(file, "/cases/main/context_state/v/1", H5T_IEEE_F32LE, 3, (hsize_t[]){15, 2, 16});
}
static void output_missing(hid_t file) { unlink_object(file, "/cases/main/output/plain"); }
static void chosen_high(hid_t file) {
  const int32_t tokens[7] = {[3] = 512};
  put_dataset(file, "/cases/main/output/chosen", H5T_STD_I32LE, 1, (hsize_t[]){7}, H5P_DEFAULT, H5T_NATIVE_INT32,
              tokens);
}
static void chosen_clipped(hid_t file) {
  const int64_t tokens[7] = {[3] = ((int64_t)1 << 32) + 5};
  put_dataset(file, "/cases/main/output/chosen", H5T_STD_I64LE, 1, (hsize_t[]){7}, H5P_DEFAULT, H5T_NATIVE_INT64,
              tokens);
}
static void scores_integer(hid_t file) {
  put_zeros(file, "/cases/main/output/scores", H5T_STD_I64LE, 2, (hsize_t[]){7, 4});
}

static void make_scale_groups(hid_t file) {
  H5Gclose(H5Gcreate2(file, "/cases/main/scales", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(file, "/cases/main/scales/exact", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(file, "/cases/main/scales/exact/alone", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void scale_shape(hid_t file) {
  make_scale_groups(file);
  put_zeros(file, "/cases/main/scales/exact/alone/final.norm", H5T_IEEE_F32LE, 2, (hsize_t[]){7, 64});
}
static void scale_negative(hid_t file) {
  make_scale_groups(file);
  put_zeros(file, "/cases/main/scales/exact/alone/final.norm", H5T_IEEE_F32LE, 2, (hsize_t[]){8, 64});
  poke_f32(file, "/cases/main/scales/exact/alone/final.norm", 65, -1e-9f);
}
static void scale_nan(hid_t file) {
  make_scale_groups(file);
  put_zeros(file, "/cases/main/scales/exact/alone/scores", H5T_IEEE_F32LE, 2, (hsize_t[]){7, 4});
  poke_f32(file, "/cases/main/scales/exact/alone/scores", 27, NAN);
}
static void scale_layer_extra(hid_t file) {
  make_scale_groups(file);
  H5Gclose(H5Gcreate2(file, "/cases/main/scales/exact/alone/attn.mix", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  put_zeros(file, "/cases/main/scales/exact/alone/attn.mix/2", H5T_IEEE_F32LE, 2, (hsize_t[]){8, 64});
}
static void i8_shape(hid_t file) {
  H5Gclose(H5Gcreate2(file, "/cases/main/stages.i8", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  put_zeros(file, "/cases/main/stages.i8/head.logits", H5T_IEEE_F32LE, 2, (hsize_t[]){7, 511});
}

/* ---- data that are elsewhere, or nowhere ---- */
#define NORM "/cases/main/stages/final.norm"

static void data_external_file(hid_t file) {
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(list, "/etc/hostname", 0, H5F_UNLIMITED);
  put_dataset(file, NORM, H5T_IEEE_F32LE, 2, (hsize_t[]){8, 64}, list, 0, NULL);
  H5Pclose(list);
}
static void data_virtual(hid_t file) {
  const hsize_t shape[2] = {8, 64};
  hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, shape, NULL);
  H5Pset_virtual(list, space, ".", "/cases/main/input/h", space);
  put_dataset(file, NORM, H5T_IEEE_F32LE, 2, shape, list, 0, NULL);
  H5Sclose(space);
  H5Pclose(list);
}
static void data_external_link(hid_t file) {
  unlink_object(file, NORM);
  assert_true(H5Lcreate_external(OPERATIONS, NORM, file, NORM, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void data_dangling_link(hid_t file) {
  unlink_object(file, NORM);
  assert_true(H5Lcreate_soft("/nowhere", file, NORM, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void chunks_missing(hid_t file) {
  const hsize_t shape[2] = {8, 64}, chunk[2] = {4, 64}, start[2] = {0, 0};
  const float values[256] = {0};
  hid_t list = H5Pcreate(H5P_DATASET_CREATE), part = H5Screate_simple(2, chunk, NULL);
  H5Pset_chunk(list, 2, chunk);
  put_dataset(file, NORM, H5T_IEEE_F32LE, 2, shape, list, 0, NULL);
  hid_t dataset = H5Dopen2(file, NORM, H5P_DEFAULT), space = H5Dget_space(dataset);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, chunk, NULL);
  assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, part, space, H5P_DEFAULT, values) >= 0);
  H5Sclose(space);
  H5Sclose(part);
  H5Dclose(dataset);
  H5Pclose(list);
}
static void taps_enormous(hid_t file) {
  const hsize_t shape[2] = {(hsize_t)1 << 40, 192}, chunk[2] = {(hsize_t)1 << 20, 192};
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  put_dataset(file, "/cases/main/context/taps", H5T_IEEE_F32LE, 2, shape, list, 0, NULL);
  H5Pclose(list);
}
static void taps_overflow(hid_t file) {
  const hsize_t shape[2] = {(hsize_t)1 << 62, 192}, chunk[2] = {1, 192};
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  put_dataset(file, "/cases/main/context/taps", H5T_IEEE_F32LE, 2, shape, list, 0, NULL);
  H5Pclose(list);
}

#define ROW(fixture, change, says) \
  { #change, fixture, change, says }

static const Damage damages[] = {
    ROW(TINY, version_2, "/: attribute version is 2, expected 1"),
    ROW(TINY, version_missing, "/: attribute version: missing"),
    ROW(TINY, format_other, "/: attribute format is \"other\", expected \"dflash-golden\""),
    ROW(TINY, format_number, "/: attribute format is i64, expected a string"),
    ROW(TINY, note_number, "/: attribute note is i64, expected a string"),
    ROW(TINY, hidden_missing, "/geometry: attribute hidden: missing"),
    ROW(TINY, hidden_float, "/geometry: attribute hidden is f64, expected i64"),
    ROW(TINY, hidden_two, "/geometry: attribute hidden: several values"),
    ROW(TINY, hidden_zero, "hidden is 0"),
    ROW(TINY, hidden_huge, "geometry"),
    ROW(TINY, head_dim_huge, "/geometry/inv_freq: shape [8], expected [549755813888]"),
    ROW(TINY, heads_odd, "heads is 3"),
    ROW(TINY, eps_integer, "/geometry: attribute eps is i64, expected f64"),
    ROW(TINY, eps_negative, "eps"),
    ROW(TINY, windows_short, "windows"),
    ROW(TINY, taps_long, "/geometry: attribute taps: more than 256 values"),
    ROW(TINY, taps_empty, "taps"),
    ROW(TINY, geometry_missing, "/geometry: missing, expected a group"),
    ROW(TINY, inv_freq_long, "/geometry/inv_freq: shape [9], expected [8]"),
    ROW(TINY, inv_freq_nan, "/geometry/inv_freq: element 2 is not finite"),
    ROW(TINY, weight_missing, "/weights/layers.1.mlp.up_proj.weight: missing, expected a dataset"),
    ROW(TINY, weight_group, "/weights/fc.weight: another kind of object, expected a dataset"),
    ROW(TINY, weight_f64, "/weights/norm.weight: type f64, expected f32"),
    ROW(TINY, weight_storage_unknown, "/weights/fc.weight: attribute storage is \"q3\""),
    ROW(TINY, weight_storage_missing, "/weights/fc.weight: attribute storage: missing"),
    ROW(TINY, weight_storage_lies, "/weights/fc.weight: type f32, expected u16"),
    ROW(TINY, weight_shape_swapped, "/weights/fc.weight: rank 2 and shape [192, 64]"),
    ROW(TINY, weight_shape_empty, "/weights/fc.weight: attribute shape has 0 sizes"),
    ROW(TINY, vector_as_f16, "/weights/norm.weight: storage is f16"),
    ROW(TINY, weight_dataset_shape, "/weights/norm.weight: shape [63], expected [64]"),
    ROW(TINY, weight_never_written, "/weights/norm.weight: holds no data, expected 256 bytes"),
    ROW(SIDECAR, packed_bytes_short, "/weights/fc.weight: shape [264703], expected [264704]"),
    ROW(SIDECAR, packed_signed, "/weights/fc.weight: type i8, expected u8"),
    ROW(TINY, weight_nan, "/weights/fc.weight"),
    ROW(TINY, head_infinite, "/target/head"),
    ROW(TINY, head_missing, "/target/head: missing"),
    ROW(TINY, a_layer_too_many, "/weights/layers.3.mlp_conv.kernel_projection.weight: extra"),
    ROW(TINY, router_mean_missing, "/router/chain/mean: missing"),
    ROW(TINY, router_basis_wide, "/router/block/basis: shape [3, 65], expected [*, 64]"),
    ROW(TINY, router_rank_zero, "/router/block/basis: rank 0"),
    ROW(TINY, router_infinite, "/router/block/mean: element 5 is not finite"),
    ROW(TINY, router_margins_short, "/router/margin: shape [5], expected [6]"),
    ROW(OPERATIONS, cases_missing, "/cases: missing"),
    ROW(OPERATIONS, case_dataset, "/cases/flat: another kind of object, expected a group"),
    ROW(OPERATIONS, case_soft_link, "/cases/again: a soft or external link"),
    ROW(OPERATIONS, case_control_name, "with a control character"),
    ROW(OPERATIONS, anchor_missing, "/cases/main: attribute anchor_pos: missing"),
    ROW(OPERATIONS, anchor_token_high, "anchor_token is 512"),
    ROW(OPERATIONS, rows_many, "rows is 9"),
    ROW(OPERATIONS, rows_any, "rows is -1"),
    ROW(OPERATIONS, drafts_many, "n_draft is 8"),
    ROW(OPERATIONS, drafts_any, "n_draft is -1"),
    ROW(OPERATIONS, head_width_small, "head_width is 3"),
    ROW(OPERATIONS, exact_two, "/cases/main: attribute exact is 2, expected 0 or 1"),
    ROW(OPERATIONS, state_len, "context_state len is 15"),
    ROW(OPERATIONS, state_len_any, "context_state len is -1"),
    ROW(OPERATIONS, taps_narrow, "/cases/main/context/taps: shape [89, 191], expected [*, 192]"),
    ROW(OPERATIONS, taps_short, "88 rows that context/taps has"),
    ROW(OPERATIONS, taps_nan, "context/taps[3, 5]"),
    ROW(OPERATIONS, taps_enormous, "/cases/main/context/taps: chunks are missing"),
    ROW(OPERATIONS, taps_overflow, "/cases/main/context/taps: its sizes overflow"),
    ROW(OPERATIONS, h_flat, "/cases/main/input/h: shape [512], expected [8, 64]"),
    ROW(OPERATIONS, h_scalar, "/cases/main/input/h: shape [], expected [8, 64]"),
    ROW(OPERATIONS, h_null, "/cases/main/input/h: shape no dataspace, expected [8, 64]"),
    ROW(OPERATIONS, h_deep, "/cases/main/input/h: shape [8, 64, 1, 1] and more, expected [8, 64]"),
    ROW(OPERATIONS, ops_beyond_taps, "context operation 0"),
    ROW(OPERATIONS, ops_negative_rows, "context operation 0: n_rows is -1"),
    ROW(OPERATIONS, ops_unknown, "context operation 0: op is 3"),
    ROW(OPERATIONS, ops_clipped, "/cases/main/context/ops: cannot be read as compound"),
    ROW(OPERATIONS, ops_short, "/cases/main/context/ops: member n_rows missing"),
    ROW(OPERATIONS, ops_plain, "/cases/main/context/ops: type i64, expected compound"),
    ROW(OPERATIONS, ops_float_member, "/cases/main/context/ops: member pos is no integer"),
    ROW(OPERATIONS, stage_missing, "/cases/main/stages/attn.mix/1: missing, expected a dataset"),
    ROW(OPERATIONS, stage_group_missing, "/cases/main/stages/mlp.gate: missing, expected a group"),
    ROW(TINY, context_stage_missing, "/cases/main/stages/context.norm: missing"),
    ROW(OPERATIONS, stage_flat_heads, "/cases/main/stages/attn.q/0: shape [8, 64], expected [8, 4, 16]"),
    ROW(OPERATIONS, stage_f64, "/cases/main/stages/final.norm: type f64, expected f32"),
    ROW(OPERATIONS, stage_integer, "/cases/main/stages/final.norm: type i32, expected f32"),
    ROW(OPERATIONS, stage_layer_extra, "/cases/main/stages/mlp.up/2: extra"),
    ROW(OPERATIONS, stage_with_rows_after_empty_push, "/cases/main/stages/context.fc: shape [9, 64], expected [0, 64]"),
    ROW(OPERATIONS, held_short, "/cases/main/context_state/v/1: shape [15, 2, 16], expected [16, 2, 16]"),
    ROW(OPERATIONS, output_missing, "/cases/main/output/plain: missing"),
    ROW(OPERATIONS, chosen_high, "output/chosen: entry 3 is token 512"),
    ROW(OPERATIONS, chosen_clipped, "/cases/main/output/chosen: cannot be read as i32"),
    ROW(OPERATIONS, scores_integer, "/cases/main/output/scores: type i64, expected f64"),
    ROW(OPERATIONS, scale_shape, "/cases/main/scales/exact/alone/final.norm: shape [7, 64], expected [8, 64]"),
    ROW(OPERATIONS, scale_negative, "final.norm: error scale 'alone' of element 65"),
    ROW(OPERATIONS, scale_nan, "output/scores: error scale 'alone' of element 27"),
    ROW(OPERATIONS, scale_layer_extra, "/cases/main/scales/exact/alone/attn.mix/2: extra"),
    ROW(OPERATIONS, i8_shape, "/cases/main/stages.i8/head.logits: shape [7, 511], expected [7, 512]"),
    ROW(OPERATIONS, data_external_file, NORM ": data in another file or virtual"),
    ROW(OPERATIONS, data_virtual, NORM ": data in another file or virtual"),
    ROW(OPERATIONS, data_external_link, NORM ": a soft or external link"),
    ROW(OPERATIONS, data_dangling_link, NORM ": a soft or external link"),
    ROW(OPERATIONS, chunks_missing, NORM ": chunks are missing"),
};

static void damage_is_named(void **state) {
  (void)state;
  char path[512];
  scratch_path("damaged.h5", path);
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    const Damage *damage = &damages[i];
    DflashError error = {0};
    hid_t file = open_copy(damage->fixture, path);
    damage->change(file);
    H5Fclose(file);
    DflashStatus status = read_everything(path, &error);
    if (status != DFLASH_INVALID_DATA && status != DFLASH_NONFINITE)
      fail_msg("%s: status %d, \"%s\"", damage->name, status, error.message);
    if (!strstr(error.message, damage->says) || strncmp(error.message, path, strlen(path)) != 0)
      fail_msg("%s: \"%s\" does not say \"%s\"", damage->name, error.message, damage->says);
  }
  unlink(path);
}

/* Values of weights are looked at only when asked for. */
static void values_are_checked_on_request(void **state) {
  (void)state;
  char path[512];
  DflashGolden *golden;
  hid_t file = open_copy(TINY, scratch_path("unchecked.h5", path));
  weight_nan(file);
  H5Fclose(file);
  assert_int_equal(dflash_golden_open(path, 0, &golden, NULL), DFLASH_OK);
  dflash_golden_close(golden);
  assert_int_not_equal(dflash_golden_open(path, 1, &golden, NULL), DFLASH_OK);
  assert_null(golden);
  unlink(path);
}

static void files_that_are_no_goldens(void **state) {
  (void)state;
  char path[512];
  DflashError error = {0};
  DflashGolden *golden;
  assert_int_equal(dflash_golden_open(scratch_path("absent.h5", path), 0, &golden, &error), DFLASH_IO);
  assert_non_null(strstr(error.message, "No such file"));
  assert_int_equal(dflash_golden_open(DFLASH_SCRATCH_FOLDER, 0, &golden, &error), DFLASH_IO);
  assert_int_equal(dflash_write_file(path, "", 0, NULL), DFLASH_OK);
  assert_int_equal(dflash_golden_open(path, 0, &golden, &error), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_write_file(path, "not HDF5 at all", 15, NULL), DFLASH_OK);
  assert_int_equal(dflash_golden_open(path, 0, &golden, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "not a readable HDF5 file"));
  unlink(path);
}

int main(void) {
  dflash_h5_quiet();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(damage_is_named),
      cmocka_unit_test(values_are_checked_on_request),
      cmocka_unit_test(files_that_are_no_goldens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
