/* Memory of the device and of the host, and copies between them. */
#ifndef DFLASH_CUDA_BUFFERS_H
#define DFLASH_CUDA_BUFFERS_H

#include "device.h"

typedef struct CudaBuffer {
  CudaAddress at; /* 0: none */
  uint64_t bytes;
} CudaBuffer;

/* `what` names it in an error. The buffer may be zeroed or open when it is closed. */
DflashStatus cuda_buffer_open(CudaDevice *device, uint64_t bytes, const char *what, CudaBuffer *buffer,
                              DflashError *error);
void cuda_buffer_close(CudaDevice *device, CudaBuffer *buffer);

/* Memory of the host that the device reads and writes directly. */
typedef struct CudaPinned {
  void *at; /* NULL: none */
  uint64_t bytes;
} CudaPinned;
DflashStatus cuda_pinned_open(CudaDevice *device, uint64_t bytes, const char *what, CudaPinned *pinned,
                              DflashError *error);
void cuda_pinned_close(CudaDevice *device, CudaPinned *pinned);

/* Lays something of `bytes` bytes out behind *total, at a multiple of 256: its offset. */
uint64_t cuda_place(uint64_t *total, uint64_t bytes);

/* Copies to the device through two pieces of pinned memory: one is filled while the other one is read. */
typedef struct CudaUpload {
  CudaPinned pieces[2];
  CUevent done[2]; /* recorded after the copy from the piece */
  bool busy[2];
  int next;
} CudaUpload;
DflashStatus cuda_upload_open(CudaDevice *device, CudaUpload *upload, DflashError *error);
/* `from` is read before the call returns. */
DflashStatus cuda_upload_copy(CudaDevice *device, CudaUpload *upload, CudaAddress to, const void *from, uint64_t bytes,
                              DflashError *error);
/* Waits for all copies. */
DflashStatus cuda_upload_end(CudaDevice *device, CudaUpload *upload, DflashError *error);
void cuda_upload_close(CudaDevice *device, CudaUpload *upload); /* zeroed or half open: fine */

/* Waits for what was queued before, copies, and waits. */
DflashStatus cuda_download(CudaDevice *device, CudaAddress from, void *to, uint64_t bytes, DflashError *error);
/* Queues a fill of whole 32-bit words. */
DflashStatus cuda_fill(CudaDevice *device, CudaAddress to, uint64_t bytes, uint32_t pattern, DflashError *error);

#endif
