#include "measure.h"

#include <stdlib.h>

#include "abi.h"

enum { WARPGROUPS = CUDA_THREADS / 128, REPEATS = 6, BLOCKS_OF_A_PROCESSOR = 16, ROUNDS = 4096, EVENTS = 24 };
/* Of a block of threads and round: multiply-adds of f32, or products on tensor cores, each of 64 x 16 weights and
 * rows, by every 128 threads. A row's parts are one operation. */
#define PLAIN_OPERATIONS (2.0 * 64 * CUDA_THREADS)
#define FAST_OPERATIONS(rows) (2.0 * 64 * 16 * (rows)*FAST_ROUND_PRODUCTS * WARPGROUPS)
#define MOST_STREAM_BYTES (UINT64_C(2) << 30)

/* At least four times the cache, else as much as an eighth of the memory, up to 2 GiB. */
static uint64_t stream_bytes(const CudaTraits *t) {
  uint64_t bytes = t->memory_bytes / 8 < MOST_STREAM_BYTES ? t->memory_bytes / 8 : MOST_STREAM_BYTES;
  if (bytes < 4 * t->l2_bytes) bytes = 4 * t->l2_bytes;
  return bytes / 4096 * 4096 + 4096;
}

static DflashStatus open_stream(DflashModel *model, DflashError *error) {
  if (model->stream.at) return DFLASH_OK;
  return cuda_buffer_open(&model->device, stream_bytes(&model->device.traits), "a streaming read", &model->stream,
                          error);
}

typedef struct Timer {
  CudaDevice *device;
  CUevent begin, end;
} Timer;

static DflashStatus timer_open(CudaDevice *device, Timer *timer, DflashError *error) {
  *timer = (Timer){.device = device};
  DflashStatus status = CUDA_CALL(device, "making an event", error, event_create, &timer->begin, CU_EVENT_DEFAULT);
  if (!status) status = CUDA_CALL(device, "making an event", error, event_create, &timer->end, CU_EVENT_DEFAULT);
  return status;
}

static void timer_close(Timer *timer) {
  if (timer->begin) (void)timer->device->driver.event_destroy(timer->begin);
  if (timer->end) (void)timer->device->driver.event_destroy(timer->end);
}

/* Shortest of several runs of a kernel, in seconds. */
static DflashStatus best_run(Timer *timer, CUfunction kernel, CudaGrid grid, const void *arguments, double *best,
                             DflashError *error) {
  CudaDevice *device = timer->device;
  DflashStatus status = DFLASH_OK;
  void *list[] = {(void *)arguments}; /* the driver reads it only */
  *best = 1e9;
  for (int i = 0; !status && i < REPEATS; i++) {
    float ms = 0;
    status = CUDA_CALL(device, "measuring", error, event_record, timer->begin, device->stream);
    if (!status)
      status = CUDA_CALL(device, "measuring", error, launch, kernel, grid.x, grid.y, grid.z, CUDA_THREADS, 1, 1,
                         grid.shared, device->stream, list, NULL);
    if (!status) status = CUDA_CALL(device, "measuring", error, event_record, timer->end, device->stream);
    if (!status) status = cuda_wait(device, "measuring", error);
    if (!status) status = CUDA_CALL(device, "measuring", error, event_elapsed, &ms, timer->begin, timer->end);
    if (!status && ms * 1e-3 < *best) *best = ms > 0 ? ms * 1e-3 : 1e-9;
  }
  return status;
}

static DflashStatus time_kernel(DflashModel *model, CUfunction kernel, CudaGrid grid, const void *arguments,
                                double *best, DflashError *error) {
  Timer timer;
  DflashStatus status = timer_open(&model->device, &timer, error);
  if (!status) status = best_run(&timer, kernel, grid, arguments, best, error);
  timer_close(&timer);
  return status;
}

static CudaGrid full_grid(const DflashModel *model) {
  return (CudaGrid){(uint32_t)model->device.traits.processors * BLOCKS_OF_A_PROCESSOR, 1, 1, 0};
}

static DflashStatus open_sums(DflashModel *model, CudaBuffer *sums, DflashError *error) {
  return cuda_buffer_open(&model->device, (uint64_t)full_grid(model).x * CUDA_THREADS * 4, "sums", sums, error);
}

DflashStatus cuda_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  CudaBuffer sums = {0};
  double seconds = 1;
  DflashStatus status = cuda_check_pointer(bytes_per_second, "measure_read: bytes_per_second", error);
  if (!status) status = open_stream(model, error);
  if (!status) status = open_sums(model, &sums, error);
  if (!status) status = cuda_fill(&model->device, model->stream.at, model->stream.bytes, 0x3c003c01u, error);
  const ReadArgs a = {model->stream.at, sums.at, (int64_t)(model->stream.bytes / 16)};
  if (!status)
    status = time_kernel(model, model->device.kernels[CUDA_KERNEL_read_stream], full_grid(model), &a, &seconds, error);
  cuda_buffer_close(&model->device, &sums);
  if (!status) *bytes_per_second = (double)model->stream.bytes / seconds;
  return status;
}

DflashStatus cuda_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  CudaBuffer sums = {0};
  double seconds = 1;
  DflashStatus status = cuda_check_pointer(operations_per_second, "measure_matrix: operations_per_second", error);
  if (!status) status = open_sums(model, &sums, error);
  const MultiplyArgs a = {sums.at, model->device.traits.processors < 8 ? ROUNDS / 64 : ROUNDS};
  const bool fast = model->fast.kernel && model->fast.multiply;
  const int rows = model->fast.tall ? FAST_TALL_ROWS : FAST_ROWS;
  CUfunction kernel = fast ? model->fast.multiply : model->device.kernels[CUDA_KERNEL_multiply];
  if (!status) status = time_kernel(model, kernel, full_grid(model), &a, &seconds, error);
  cuda_buffer_close(&model->device, &sums);
  if (!status)
    *operations_per_second =
        (fast ? FAST_OPERATIONS(rows) : PLAIN_OPERATIONS) * a.rounds * full_grid(model).x / seconds;
  return status;
}

/* Other lines take the place of all that the cache holds. */
DflashStatus cuda_evict_caches(DflashModel *model, DflashError *error) {
  DflashStatus status = open_stream(model, error);
  const uint64_t bytes = 2 * model->device.traits.l2_bytes;
  if (!status)
    status = cuda_fill(&model->device, model->stream.at, bytes < model->stream.bytes ? bytes : model->stream.bytes, 0,
                       error);
  return status ? status : cuda_wait(&model->device, "evicting caches", error);
}

/* ---- the step of the clocks ---- */

static int compare(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Times of events that follow each other: the smallest difference of two of them that are not equal. */
static DflashStatus event_step(CudaDevice *device, const CUevent *events, double *ns, DflashError *error) {
  float times[EVENTS] = {0};
  DflashStatus status = DFLASH_OK;
  for (int i = 0; !status && i < EVENTS; i++)
    status = CUDA_CALL(device, "measuring a clock", error, event_record, events[i], device->stream);
  if (!status) status = cuda_wait(device, "measuring a clock", error);
  for (int i = 1; !status && i < EVENTS; i++)
    status = CUDA_CALL(device, "measuring a clock", error, event_elapsed, &times[i], events[0], events[i]);
  if (status) return status;
  qsort(times, EVENTS, sizeof *times, compare);
  *ns = 1e9;
  for (int i = 1; i < EVENTS; i++) {
    const double step = ((double)times[i] - times[i - 1]) * 1e6;
    if (step > 0.5 && step < *ns) *ns = step;
  }
  return DFLASH_OK;
}

static DflashStatus measure_events(CudaDevice *device, double *ns, DflashError *error) {
  CUevent events[EVENTS] = {0};
  DflashStatus status = DFLASH_OK;
  for (int i = 0; !status && i < EVENTS; i++)
    status = CUDA_CALL(device, "making an event", error, event_create, &events[i], CU_EVENT_DEFAULT);
  if (!status) status = event_step(device, events, ns, error);
  for (int i = 0; i < EVENTS; i++)
    if (events[i]) (void)device->driver.event_destroy(events[i]);
  return status;
}

static DflashStatus measure_stamps(CudaDevice *device, uint64_t *ns, DflashError *error) {
  CudaBuffer step;
  DflashStatus status = cuda_buffer_open(device, sizeof *ns, "the step of a clock", &step, error);
  if (status) return status;
  status = cuda_launch(device, CUDA_KERNEL_clock_step, (CudaGrid){1, 1, 1, 0}, &(ClockArgs){step.at}, error);
  if (!status) status = cuda_download(device, step.at, ns, sizeof *ns, error);
  cuda_buffer_close(device, &step);
  return status;
}

DflashStatus cuda_measure_step(DflashModel *model, uint64_t *ns, DflashError *error) {
  uint64_t stamps = 0;
  double events = 0;
  if (model->clock_step_ns == 0) {
    DflashStatus status = measure_stamps(&model->device, &stamps, error);
    if (!status) status = measure_events(&model->device, &events, error);
    if (status) return status;
    const uint64_t of_events = events < 1e9 ? (uint64_t)(events + 0.5) : 1;
    const uint64_t coarser = stamps > of_events ? stamps : of_events;
    model->clock_step_ns = coarser > 0 ? coarser : 1;
  }
  *ns = model->clock_step_ns;
  return DFLASH_OK;
}

DflashStatus cuda_device_state(DflashModel *model, DflashDeviceState *state, DflashError *error) {
  DflashDeviceState found = {0};
  DflashStatus status = cuda_check_struct(state, sizeof state->struct_size, "device_state: state", error);
  if (status) return status;
  if (!model->nvml_tried) cuda_nvml_open(&model->nvml, model->device.traits.pci);
  model->nvml_tried = true;
  cuda_nvml_read(&model->nvml, &found);
  cuda_answer(state, &found, sizeof found);
  return DFLASH_OK;
}
