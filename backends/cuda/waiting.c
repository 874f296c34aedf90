/* Rows of a push that wait to be projected: the host keeps them, and the device has them before they are needed. */
#include <string.h>

#include "held.h"

enum { ROWS_AT_ONCE = 32 }; /* while some are on their way, the next ones are written */

static uint64_t row_bytes(const DflashSequence *s) {
  return (uint64_t)dflash_geometry_tap_width(&s->model->geometry) * sizeof(float);
}
static char *host_row(const DflashSequence *s, int64_t row) {
  return (char *)s->waiting.host.at + (uint64_t)row * row_bytes(s);
}

DflashStatus cuda_waiting_open(DflashSequence *s, DflashError *error) {
  CudaDevice *device = &s->model->device;
  const uint64_t bytes = CUDA_SETTLE_ROWS * row_bytes(s);
  if (s->waiting.host.at || s->capture) return DFLASH_OK;
  DflashStatus status = cuda_pinned_open(device, bytes, "waiting rows", &s->waiting.host, error);
  if (!status) status = cuda_buffer_open(device, bytes, "waiting rows", &s->waiting.memory, error);
  if (status) cuda_waiting_close(s);
  return status;
}

DflashStatus cuda_waiting_sent(DflashSequence *s, DflashError *error) {
  if (!s->waiting.sending) return DFLASH_OK;
  s->waiting.sending = false;
  return cuda_wait(&s->model->device, "the copy of waiting rows", error);
}

/* Rows that wait are not touched on the host: what would overwrite them goes through the memory of a piece. */
DflashStatus cuda_waiting_send(DflashSequence *s, int64_t first, const float *taps, int64_t rows, DflashError *error) {
  CudaDevice *device = &s->model->device;
  CudaWaiting *w = &s->waiting;
  const uint64_t bytes = row_bytes(s);
  if (rows == 0) return DFLASH_OK;
  DflashStatus status = cuda_waiting_sent(s, error);
  w->written = first >= s->len - s->settled;
  if (w->sent > first) w->sent = first; /* on the device others may be overwritten that wait yet */
  char *to = w->written ? host_row(s, first) : cuda_piece_taps(s);
  for (int64_t done = 0; !status && done < rows; done += ROWS_AT_ONCE) {
    const uint64_t skip = (uint64_t)done * bytes;
    const uint64_t count = bytes * (uint64_t)(rows - done < ROWS_AT_ONCE ? rows - done : ROWS_AT_ONCE);
    memcpy(to + skip, (const char *)taps + skip, (size_t)count);
    w->sending = true;
    status = CUDA_CALL(device, "the copy of waiting rows", error, copy_to_device,
                       w->memory.at + (uint64_t)first * bytes + skip, to + skip, (size_t)count, device->stream);
  }
  return status;
}

void cuda_waiting_keep(DflashSequence *s, int64_t first, const float *taps, int64_t rows) {
  CudaWaiting *w = &s->waiting;
  if (rows == 0) return;
  if (!w->written) memcpy(host_row(s, first), taps, (size_t)((uint64_t)rows * row_bytes(s)));
  if (w->sent == first) w->sent = first + rows;
}

void cuda_waiting_close(DflashSequence *s) {
  if (s->waiting.sending) (void)s->model->device.driver.stream_wait(s->model->device.stream);
  cuda_buffer_close(&s->model->device, &s->waiting.memory);
  cuda_pinned_close(&s->model->device, &s->waiting.host);
  s->waiting = (CudaWaiting){0};
}
