/* A model: its device, weights in device memory and pipelines. */
#ifndef DFLASH_VULKAN_MODEL_H
#define DFLASH_VULKAN_MODEL_H

#include "assume.h"
#include "kernel.h"
#include "memory.h"
#include "plan.h"
#include "state.h"

#include "dflash/backend.h"

/* What model_open's options say. */
typedef struct VulkanOptions {
  bool validation;       /* validation=on|off (off) */
  bool dot;              /* dot=auto|on|off (auto): the integer dot product of profile i8 */
  bool dot_required;     /* dot=on: a device without it is refused */
  bool units;            /* matrix=auto|tile|cooperative (auto): products on matrix units where they take a matrix */
  bool units_required;   /* matrix=cooperative: a device without them is refused */
  bool attention;        /* attention=auto|plain (auto): on matrix units, where products are (attend.h) */
  bool join;             /* join=auto|off (auto): kernels that make an activation prepare it (fragments.h) */
  bool keep_all;         /* keep=window|all (window): what a windowed layer may let go of */
  uint32_t splits;       /* splits=N of the context (0: by the device) */
  bool statistics;       /* statistics=on|off (off): of kernels, in the paths of stages */
  VulkanAssumed assumed; /* assume=KEY:N,... (nothing): of a device that offers less */
  uint32_t skip_barrier; /* skip-barrier=N (0): leaves one barrier of a block out, to prove that it is missed */
  VulkanFault fault;     /* fail=N[:memory|lost|timeout] (none): makes the N-th call of the API fail */
} VulkanOptions;

/* Rows of a matrix that one binding can show. */
typedef struct VulkanPart {
  int64_t first, rows;
  VulkanRange weights, scales, codes; /* as kernel.h binds them; what a storage lacks is `weights` again */
} VulkanPart;

typedef struct VulkanMatrix {
  int32_t storage;
  int64_t rows, cols;
  int64_t pieces;             /* of a tile of 16 rows in fragments (units.h); 0: rows as they are */
  uint32_t pitch, code_pitch; /* of rows as they are */
  VulkanRange columns;        /* q8_2f, else parts[0].weights */
  VulkanPart *parts;          /* owned */
  uint32_t part_count;
  uint64_t row_bytes; /* that one row costs to read, scales and codes included */
} VulkanMatrix;

typedef struct VulkanLayer {
  VulkanRange input_norm, post_norm, q_norm, k_norm, attn_base, mlp_base;
  VulkanMatrix attn_kernel, q, k, v, o, mlp_kernel, gate, up, down;
} VulkanLayer;

struct DflashModel {
  VulkanDevice device;
  VulkanState state; /* for device_state, opened when first asked for */
  VulkanOptions options;
  DflashGeometry geometry;
  int32_t profile;
  bool units_fit; /* matrix units hold elements where fragments have them (units.h) */
  VulkanPipelines pipelines;
  VulkanArena arena;
  VulkanRange inv_freq, hidden_norm, norm;
  VulkanRange masks, pairs;            /* units.h; where units_fit */
  VulkanMatrix fc, selector, head;     /* head.rows 0: none */
  VulkanMatrix predecessor, successor; /* as stored, rows tightly packed: parts only */
  VulkanLayer *layers;                 /* [geometry.layers] */
  VulkanBuffer stream;                 /* for measure_read and evict_caches, made when first asked for */
  uint64_t stamp_step_ns;              /* of time stamps; 0: not measured yet */
};

DflashStatus vulkan_options_read(const DflashModelDesc *desc, VulkanOptions *options, DflashError *error);
extern const char vulkan_options_text[];

DflashStatus vulkan_supports(const DflashModelDesc *desc, DflashError *error);
DflashStatus vulkan_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error);
void vulkan_model_close(DflashModel *model);

/* Uploads a tensor as a matrix (rank 2), its parts aligned and none above the device's binding range. */
DflashStatus vulkan_matrix_open(DflashModel *model, VulkanUpload *upload, const DflashTensor *tensor, const char *name,
                                VulkanMatrix *matrix, DflashError *error);
void vulkan_matrix_close(VulkanMatrix *matrix);

#endif
