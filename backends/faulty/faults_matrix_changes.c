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

void fault_last_row_only(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  memset(x, 0, (size_t)((rows - 1) * width) * sizeof *x);
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

/* Rows and columns change places in the parameters: as many channels are computed as there are rows. */
void fault_lengths_swapped(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = rows; i < width; i++) x[r * width + i] = 0;
}

/* Rows are written a channel short: the last keeps what the channel before it has. */
void fault_last_width_lost(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  (void)call;
  for (int64_t r = 0; r < rows; r++) x[(r + 1) * width - 1] = x[(r + 1) * width - 2];
}

/* Heads in backward order. */
void fault_head_order(const FaultCall *call, float *x, int64_t rows, int64_t width) {
  const int64_t head_dim = call->model->geometry.head_dim, heads = width / head_dim;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t head = 0; head < heads / 2; head++)
      swap(x + r * width + head * head_dim, x + r * width + (heads - 1 - head) * head_dim, head_dim);
}
