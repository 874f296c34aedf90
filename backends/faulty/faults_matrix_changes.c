/* Inputs in another order, outputs in another place. */
#include <string.h>

#include "backends/faulty/faults_matrix.h"

static void swap(float *a, float *b, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const float kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

/* Blocks of a row in ascending order of their tap, by exchanging neighbours. */
static void sort_row(const DflashList *taps, int64_t hidden, float *x) {
  int64_t at[DFLASH_LIST_MAX];
  memcpy(at, taps->at, sizeof at);
  for (int64_t end = taps->count; end > 1; end--)
    for (int64_t i = 0; i + 1 < end; i++) {
      if (at[i] <= at[i + 1]) continue;
      const int64_t kept = at[i];
      at[i] = at[i + 1];
      at[i + 1] = kept;
      swap(x + i * hidden, x + (i + 1) * hidden, hidden);
    }
}

void fault_taps_sorted(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; r++) sort_row(&call->model->geometry.taps, call->model->geometry.hidden, x + r * width);
}

/* The last tap's rows begin one row late. */
void fault_tap_rows_shifted(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  const int64_t hidden = call->model->geometry.hidden;
  for (int64_t r = rows - 1; r > 0; r--)
    memcpy(x + (r + 1) * width - hidden, x + r * width - hidden, (size_t)hidden * sizeof *x);
}

void fault_last_row_only(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  memset(x, 0, (size_t)((rows - 1) * width) * sizeof *x);
}

void fault_last_layer_half_lost(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  if (call->call.layer != call->model->geometry.layers - 1) return;
  for (int64_t r = 0; r < rows; r++) memset(x + r * width + width / 2, 0, (size_t)(width - width / 2) * sizeof *x);
}

void fault_all_zero(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  memset(x, 0, (size_t)(rows * width) * sizeof *x);
}

void fault_output_f16(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t i = 0; i < rows * width; i++) x[i] = fault_round_f16(x[i]);
}

/* Channels 8 to 15 and 16 to 23. */
void fault_row_blocks_swapped(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t r = 0; r < rows && width >= 24; r++) swap(x + r * width + 8, x + r * width + 16, 8);
}

void fault_scale_left_over(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t i = 0; rows > 1 && i < rows * width; i++) x[i] *= 0.5F;
}

/* The last quarter of the matrix lies past what can be bound. */
void fault_past_limit_zero(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t r = 0; r < rows; r++) memset(x + r * width + width - width / 4, 0, (size_t)(width / 4) * sizeof *x);
}

/* Rows are written a channel short: the last keeps what the channel before it has. */
void fault_last_width_lost(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t r = 0; r < rows; r++) x[(r + 1) * width - 1] = x[(r + 1) * width - 2];
}

void fault_one_element_off(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t i = 1500; i < rows * width; i += 3000) x[i] *= 1.125F;
  if (rows * width <= 1500) x[rows * width / 2] *= 1.125F;
}

/* Heads in backward order. */
void fault_head_order(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  const int64_t head_dim = call->model->geometry.head_dim, heads = width / head_dim;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t head = 0; head < heads / 2; head++)
      swap(x + r * width + head * head_dim, x + r * width + (heads - 1 - head) * head_dim, head_dim);
}
