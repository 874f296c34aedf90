/* A model: a device with the weights of one drafter on it. */
#ifndef DFLASH_CUDA_MODEL_H
#define DFLASH_CUDA_MODEL_H

#include "buffers.h"
#include "fast.h"
#include "nvml.h"
#include "tiled.h"

enum { CUDA_PATH_AUTO, CUDA_PATH_PLAIN, CUDA_PATH_FAST };

typedef struct CudaOptions {
  int32_t path;   /* CUDA_PATH_* */
  int32_t splits; /* parts of the context in attention; 0: by the device */
  bool keep_all;  /* a windowed layer lets no rows go */
} CudaOptions;

typedef struct CudaLayer {
  CudaAddress input_norm, post_norm, q_norm, k_norm, attn_base, mlp_base; /* f32 */
  CudaMatrix attn_kernel, q, k, v, o, mlp_kernel, gate, up, down;
  CudaAddress k_scales, v_scales; /* as tiled products read them; 0: no q4tp */
} CudaLayer;

struct DflashModel {
  CudaDevice device;
  CudaOptions options;
  DflashGeometry geometry;
  int32_t profile;
  CudaBuffer weights; /* all of them, and inv_freq */
  CudaAddress inv_freq, hidden_norm, norm;
  CudaMatrix fc, selector, head;     /* head: no rows where the model was opened without */
  CudaMatrix predecessor, successor; /* only weights, rows, cols, storage */
  CudaLayer *layers;
  CudaFast fast;
  CudaTiled tiled;
  CudaBuffer stream;      /* what measure_read and evict_caches move; opened by the first */
  uint64_t clock_step_ns; /* 0: not measured yet */
  CudaNvml nvml;
  bool nvml_tried;
};

/* supports.c: everything that can be said before a device is opened. */
DflashStatus cuda_check_desc(const DflashModelDesc *desc, CudaOptions *options, DflashError *error);
DflashStatus cuda_check_device(const DflashModelDesc *desc, const CudaOptions *options, const CudaTraits *traits,
                               DflashError *error);
uint64_t cuda_weight_bytes(const DflashModelDesc *desc); /* as stored */
DflashStatus cuda_supports(const DflashModelDesc *desc, DflashError *error);

/* options.c */
extern const char cuda_options_text[];
DflashStatus cuda_options_read(const DflashModelDesc *desc, CudaOptions *options, DflashError *error);

/* model.c. The device's context is current after a success, and is not after a failure. */
DflashStatus cuda_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error);
void cuda_model_close(DflashModel *model); /* while it is current; half open: fine */

/* matrix.c: a stored matrix on the device, in parts that each begin at an aligned address. */
/* Bytes of a matrix as a file stores it; 0 where that storage cannot hold one of this shape. */
uint64_t cuda_stored_bytes(int32_t storage, int64_t rows, int64_t cols);
const char *cuda_storage_name(int32_t storage);
/* Lays it out behind *total; addresses are offsets yet. */
void cuda_matrix_place(CudaMatrix *matrix, int32_t storage, int64_t rows, int64_t cols, uint64_t *total);
void cuda_matrix_move(CudaMatrix *matrix, CudaAddress base); /* offsets become addresses */
DflashStatus cuda_matrix_upload(CudaDevice *device, CudaUpload *upload, const CudaMatrix *matrix, const void *data,
                                DflashError *error);
/* Warps that share a weight row's columns, so that the device has enough to do. */
int32_t cuda_matrix_team(const CudaMatrix *matrix, int32_t processors);
uint64_t cuda_matrix_bytes(const CudaMatrix *matrix, int64_t rows); /* read for its first rows, in the form held */

#endif
