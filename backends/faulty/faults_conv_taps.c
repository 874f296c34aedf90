/* Wrong coefficients and wrong rows. */
#include "backends/faulty/faults_conv.h"
#include "model/stage_table.h"

static float base_of(const FaultCall *call, const float *base, int64_t side, int64_t tap, int64_t channel) {
  const DflashGeometry *g = &call->model->geometry;
  return base[(side * g->conv_kernel + tap) * g->hidden + channel];
}

static float dynamic_of(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                        int64_t group) {
  const DflashGeometry *g = &call->model->geometry;
  const int64_t column = (side * g->conv_kernel + tap) * dflash_geometry_groups(g) + group;
  return dynamic[row * dflash_geometry_kernel_width(g) + column];
}

static int64_t group_of(const FaultCall *call, int64_t channel) { return channel / call->model->geometry.conv_group; }

static int64_t last_tap(const FaultCall *call) { return call->model->geometry.conv_kernel - 1; }

static const float *at(const FaultCall *call, const float *x, int64_t row, int64_t channel) {
  return row < 0 ? NULL : x + row * call->model->geometry.hidden + channel;
}

float fault_conv_base_reversed(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                               int64_t channel) {
  (void)row;
  return base_of(call, base, side, last_tap(call) - tap, channel);
}

/* [side][channel][tap] */
float fault_conv_base_by_channel(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                                 int64_t channel) {
  const DflashGeometry *g = &call->model->geometry;
  (void)row;
  return base[(side * g->hidden + channel) * g->conv_kernel + tap];
}

float fault_conv_base_before(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                             int64_t channel) {
  (void)row, (void)side;
  return base_of(call, base, 0, tap, channel);
}

float fault_conv_base_after(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                            int64_t channel) {
  (void)row, (void)side;
  return base_of(call, base, 1, tap, channel);
}

float fault_conv_base_none(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                           int64_t channel) {
  (void)call, (void)base, (void)row, (void)side, (void)tap, (void)channel;
  return 0;
}

float fault_conv_base_bf16(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                           int64_t channel) {
  (void)row;
  return fault_round_bf16(base_of(call, base, side, tap, channel));
}

float fault_conv_dynamic_reversed(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                  int64_t channel) {
  return dynamic_of(call, dynamic, row, side, last_tap(call) - tap, group_of(call, channel));
}

float fault_conv_dynamic_before(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                int64_t channel) {
  (void)side;
  return dynamic_of(call, dynamic, row, 0, tap, group_of(call, channel));
}

float fault_conv_dynamic_after(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                               int64_t channel) {
  (void)side;
  return dynamic_of(call, dynamic, row, 1, tap, group_of(call, channel));
}

float fault_conv_dynamic_none(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                              int64_t channel) {
  (void)call, (void)dynamic, (void)row, (void)side, (void)tap, (void)channel;
  return 0;
}

/* [column][row] */
float fault_conv_dynamic_transposed(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                    int64_t channel) {
  const DflashGeometry *g = &call->model->geometry;
  const int64_t column = (side * g->conv_kernel + tap) * dflash_geometry_groups(g) + group_of(call, channel);
  return dynamic[column * call->call.rows + row];
}

/* The half of a side as if its rows stood side by side: [side][row][tap][group]. */
float fault_conv_dynamic_dense(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                               int64_t channel) {
  const DflashGeometry *g = &call->model->geometry;
  const int64_t width = dflash_geometry_kernel_width(g) / 2;
  return dynamic[(side * call->call.rows + row) * width + tap * dflash_geometry_groups(g) + group_of(call, channel)];
}

float fault_conv_dynamic_modulo(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                int64_t channel) {
  return dynamic_of(call, dynamic, row, side, tap, channel % dflash_geometry_groups(&call->model->geometry));
}

float fault_conv_dynamic_groups_of_16(const FaultCall *call, const float *dynamic, int64_t row, int64_t side,
                                      int64_t tap, int64_t channel) {
  const int64_t last = dflash_geometry_groups(&call->model->geometry) - 1, group = channel / 16;
  return dynamic_of(call, dynamic, row, side, tap, group < last ? group : last);
}

/* The coefficients of the row that a tap reads, for those of the row that it writes. */
float fault_conv_dynamic_of_source(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                   int64_t channel) {
  return dynamic_of(call, dynamic, row < tap ? row : row - tap, side, tap, group_of(call, channel));
}

float fault_conv_dynamic_of_anchor(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                                   int64_t channel) {
  (void)row;
  return dynamic_of(call, dynamic, 0, side, tap, group_of(call, channel));
}

/* Tap o reads the row o + 1 back. */
const float *fault_conv_source_shifted(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                       int64_t channel) {
  return at(call, x, row - tap - 1, channel);
}

/* The rows that follow in place of those before. */
const float *fault_conv_source_ahead(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel) {
  return row + tap < call->call.rows ? at(call, x, row + tap, channel) : NULL;
}

/* The channel o before in place of the row o before. */
const float *fault_conv_source_channel(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                       int64_t channel) {
  return channel < tap ? NULL : at(call, x, row, channel - tap);
}

/* The first row stands in for the rows before it. */
const float *fault_conv_source_clamped(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                       int64_t channel) {
  return at(call, x, row < tap ? 0 : row - tap, channel);
}

/* A tap wider than the block is moved into it. */
const float *fault_conv_source_short(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel) {
  const int64_t most = call->call.rows - 1;
  return at(call, x, row - (tap < most ? tap : most), channel);
}

/* The block's last rows stand in for the rows before the first, as in a circular shift. */
const float *fault_conv_source_circular(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                        int64_t channel) {
  const int64_t rows = call->call.rows;
  return at(call, x, ((row - tap) % rows + rows) % rows, channel);
}

/* Rows are taken in tiles of 8, and a tile knows nothing of the one before. */
const float *fault_conv_source_tile(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel) {
  return row % 8 < tap ? NULL : at(call, x, row - tap, channel);
}

/* Row -1 of a buffer that holds the rows of another block: its last. */
static const float *before_first(const FaultCall *call, const FaultValues *values, int64_t row, int64_t channel) {
  const int64_t hidden = call->model->geometry.hidden;
  const int32_t input = dflash_stage_row(call->call.stage)->inputs[0];
  const float *stale = fault_value(values, input, call->call.layer);
  const int64_t rows = stale == NULL ? 0 : values->elements[input] / hidden;
  return rows + row < 0 || rows == 0 ? NULL : stale + (rows + row) * hidden + channel;
}

const float *fault_conv_source_stale(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel) {
  if (row >= tap || !call->in_block) return at(call, x, row - tap, channel);
  return before_first(call, &call->sequence->previous, row - tap, channel);
}

/* A shared buffer holds the rows of the block that another sequence ran last. */
const float *fault_conv_source_sequence(const FaultCall *call, const float *x, int64_t row, int64_t tap,
                                        int64_t channel) {
  const DflashSequence *last = call->model->last;
  if (row >= tap || !call->in_block || last == NULL || last == call->sequence) return at(call, x, row - tap, channel);
  return before_first(call, &last->block, row - tap, channel);
}
