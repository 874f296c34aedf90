/* The tensors of a model, one after the other: what the weights give, and where the model holds it. */
#ifndef DFLASH_VULKAN_TENSORS_H
#define DFLASH_VULKAN_TENSORS_H

#include "model.h"

enum { VULKAN_VECTOR, VULKAN_MATRIX, VULKAN_CODEBOOK };

typedef struct VulkanTensor {
  const char *name;
  int64_t layer; /* -1: of the whole model */
  int kind;
  int64_t rows, cols;
  const DflashTensor *tensor; /* NULL: not known, or a head that is absent */
  VulkanRange *vector;        /* of the model, when one is given: of VULKAN_VECTOR */
  VulkanMatrix *matrix;       /* of the others */
} VulkanTensor;

int64_t vulkan_tensor_count(const DflashGeometry *geometry);
/* weights and model may be NULL. */
VulkanTensor vulkan_tensor_at(const DflashGeometry *geometry, const DflashWeights *weights, DflashModel *model,
                              int64_t index);

/* Data, shape, storage and bytes are those that the geometry asks for; DFLASH_INVALID_ARGUMENT names the tensor. */
DflashStatus vulkan_tensor_check(const VulkanTensor *tensor, DflashError *error);
/* Puts the tensor's name, and its layer, before the message of *error. */
DflashStatus vulkan_tensor_error(const VulkanTensor *tensor, DflashError *error, DflashStatus status);

#endif
