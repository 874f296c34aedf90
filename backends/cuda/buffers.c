#include "buffers.h"

#include <string.h>

#include "base/error.h"

enum { ALIGNMENT = 256, PIECE_BYTES = 8 << 20 };

uint64_t cuda_place(uint64_t *total, uint64_t bytes) {
  const uint64_t offset = (*total + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  *total = offset + bytes;
  return offset;
}

static DflashStatus name_error(DflashStatus status, uint64_t bytes, const char *what, DflashError *error) {
  if (status) dflash_error_prefix(error, "cuda: %llu bytes for %s", (unsigned long long)bytes, what);
  return status;
}

DflashStatus cuda_buffer_open(CudaDevice *device, uint64_t bytes, const char *what, CudaBuffer *buffer,
                              DflashError *error) {
  *buffer = (CudaBuffer){.bytes = bytes};
  DflashStatus status =
      CUDA_CALL(device, "device memory", error, memory_alloc, &buffer->at, bytes > 0 ? (size_t)bytes : 1);
  if (status) *buffer = (CudaBuffer){0};
  return name_error(status, bytes, what, error);
}

void cuda_buffer_close(CudaDevice *device, CudaBuffer *buffer) {
  if (buffer->at) (void)device->driver.memory_free(buffer->at);
  *buffer = (CudaBuffer){0};
}

DflashStatus cuda_pinned_open(CudaDevice *device, uint64_t bytes, const char *what, CudaPinned *pinned,
                              DflashError *error) {
  *pinned = (CudaPinned){.bytes = bytes};
  DflashStatus status =
      CUDA_CALL(device, "pinned memory", error, host_alloc, &pinned->at, bytes > 0 ? (size_t)bytes : 1, 0);
  if (status) *pinned = (CudaPinned){0};
  return name_error(status, bytes, what, error);
}

void cuda_pinned_close(CudaDevice *device, CudaPinned *pinned) {
  if (pinned->at) (void)device->driver.host_free(pinned->at);
  *pinned = (CudaPinned){0};
}

DflashStatus cuda_upload_open(CudaDevice *device, CudaUpload *upload, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  *upload = (CudaUpload){0};
  for (int i = 0; !status && i < 2; i++) {
    status = cuda_pinned_open(device, PIECE_BYTES, "an upload", &upload->pieces[i], error);
    if (!status) status = CUDA_CALL(device, "making an event", error, event_create, &upload->done[i], CU_EVENT_DEFAULT);
  }
  if (status) cuda_upload_close(device, upload);
  return status;
}

static DflashStatus copy_piece(CudaDevice *device, CudaUpload *upload, CudaAddress to, const void *from, size_t bytes,
                               DflashError *error) {
  const int i = upload->next;
  DflashStatus status = DFLASH_OK;
  if (upload->busy[i]) status = CUDA_CALL(device, "an upload", error, event_wait, upload->done[i]);
  if (status) return status;
  memcpy(upload->pieces[i].at, from, bytes);
  status = CUDA_CALL(device, "an upload", error, copy_to_device, to, upload->pieces[i].at, bytes, device->stream);
  if (!status) status = CUDA_CALL(device, "an upload", error, event_record, upload->done[i], device->stream);
  upload->busy[i] = true;
  upload->next = 1 - i;
  return status;
}

DflashStatus cuda_upload_copy(CudaDevice *device, CudaUpload *upload, CudaAddress to, const void *from, uint64_t bytes,
                              DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (uint64_t done = 0, piece; !status && done < bytes; done += piece) {
    piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
    status = copy_piece(device, upload, to + done, (const char *)from + done, (size_t)piece, error);
  }
  return status;
}

DflashStatus cuda_upload_end(CudaDevice *device, CudaUpload *upload, DflashError *error) {
  upload->busy[0] = upload->busy[1] = false;
  return cuda_wait(device, "an upload", error);
}

void cuda_upload_close(CudaDevice *device, CudaUpload *upload) {
  bool queued = false;
  for (int i = 0; i < 2; i++) queued = queued || upload->busy[i];
  if (queued) (void)device->driver.stream_wait(device->stream);
  for (int i = 0; i < 2; i++) {
    if (upload->done[i]) (void)device->driver.event_destroy(upload->done[i]);
    cuda_pinned_close(device, &upload->pieces[i]);
  }
  *upload = (CudaUpload){0};
}

DflashStatus cuda_download(CudaDevice *device, CudaAddress from, void *to, uint64_t bytes, DflashError *error) {
  DflashStatus status = CUDA_CALL(device, "a download", error, copy_to_host, to, from, (size_t)bytes, device->stream);
  return status ? status : cuda_wait(device, "a download", error);
}

DflashStatus cuda_fill(CudaDevice *device, CudaAddress to, uint64_t bytes, uint32_t pattern, DflashError *error) {
  if (bytes < sizeof pattern) return DFLASH_OK;
  return CUDA_CALL(device, "filling memory", error, fill, to, pattern, (size_t)(bytes / sizeof pattern),
                   device->stream);
}
