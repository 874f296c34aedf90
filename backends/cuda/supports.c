/* What can be said before a model is opened. */
#include "abi.h"
#include "sequence.h"
#include "tensors.h"

enum { OLDEST_MAJOR = 8 };

static bool any_q4tp(const DflashModelDesc *desc) {
  for (int64_t i = 0; i < cuda_tensor_count(desc->geometry); i++) {
    const CudaTensor t = cuda_tensor_at(desc->geometry, desc->weights, NULL, i);
    if (t.kind == CUDA_MATRIX && t.tensor && t.tensor->storage == DFLASH_STORAGE_Q4TP) return true;
  }
  return false;
}

static DflashStatus check_profile(const DflashModelDesc *desc, DflashError *error) {
  const int32_t profile = desc->profile;
  if (profile == DFLASH_PROFILE_EXACT || profile == DFLASH_PROFILE_F16) return DFLASH_OK;
  if (profile == DFLASH_PROFILE_BF16)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "cuda: profile bf16 is not offered; there are exact, i8, f16");
  if (profile != DFLASH_PROFILE_I8)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: profile %d is not known", (int)profile);
  if (!desc->weights || any_q4tp(desc)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED,
                          "cuda: profile i8 is for q4tp matrices, and no matrix of this model is q4tp");
}

static DflashStatus check_sizes(const DflashGeometry *g, DflashError *error) {
  const struct {
    const char *name;
    int64_t value, most;
  } fields[] = {{"head_dim", g->head_dim, CUDA_MOST_HEAD_DIM},
                {"selector_top", g->selector_top, CUDA_MOST_TOP},
                {"block", g->block, CUDA_MOST_ROWS},
                {"vocab", g->vocab, INT32_MAX},
                {"heads", g->heads, UINT16_MAX},
                {"conv_kernel", g->conv_kernel, UINT16_MAX},
                {"hidden", g->hidden, INT32_MAX},
                {"selector_rank", g->selector_rank, INT32_MAX}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i].value > fields[i].most)
      return dflash_error_set(error, DFLASH_UNSUPPORTED, "cuda: %s is %lld, the limit is %lld", fields[i].name,
                              (long long)fields[i].value, (long long)fields[i].most);
  return DFLASH_OK;
}

DflashStatus cuda_check_desc(const DflashModelDesc *desc, CudaOptions *options, DflashError *error) {
  DflashStatus status = cuda_check_struct(desc, sizeof *desc, "the description of a model", error);
  if (!status) status = cuda_check_pointer(desc->geometry, "the geometry of a model", error);
  if (status) return status;
  if (desc->weights && (!desc->weights->layers || !desc->weights->inv_freq))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: weights without layers or inv_freq");
  status = cuda_options_read(desc, options, error);
  if (!status) status = check_profile(desc, error);
  if (!status) status = check_sizes(desc->geometry, error);
  return status;
}

uint64_t cuda_weight_bytes(const DflashModelDesc *desc) {
  uint64_t total = 0;
  if (!desc->weights) return 0;
  for (int64_t i = 0; i < cuda_tensor_count(desc->geometry); i++) {
    const CudaTensor t = cuda_tensor_at(desc->geometry, desc->weights, NULL, i);
    if (t.tensor) total += t.tensor->bytes;
  }
  return total;
}

static DflashStatus check_memory(const DflashModelDesc *desc, const CudaTraits *traits, DflashError *error) {
  const uint64_t bytes = cuda_weight_bytes(desc);
  if (bytes <= traits->memory_bytes) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "cuda: the weights take %llu bytes, device %s has %llu",
                          (unsigned long long)bytes, traits->id, (unsigned long long)traits->memory_bytes);
}

DflashStatus cuda_check_device(const DflashModelDesc *desc, const CudaOptions *options, const CudaTraits *traits,
                               DflashError *error) {
  char why[96];
  if (traits->major < OLDEST_MAJOR)
    return dflash_error_set(error, DFLASH_UNSUPPORTED,
                            "cuda: device %s has compute capability %d.%d; 8.0 or later is needed", traits->id,
                            traits->major, traits->minor);
  const uint64_t shared = cuda_attend_shared(desc->geometry);
  if (shared > traits->shared_bytes)
    return dflash_error_set(
        error, DFLASH_UNSUPPORTED,
        "cuda: attention with a head_dim of %lld takes %llu bytes of shared memory; a block has %llu",
        (long long)desc->geometry->head_dim, (unsigned long long)shared, (unsigned long long)traits->shared_bytes);
  DflashStatus status = check_memory(desc, traits, error);
  if (status || options->path != CUDA_PATH_FAST || cuda_fast_fits(desc, options, traits, why, sizeof why))
    return status;
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "cuda: path=fast: %s", why);
}

DflashStatus cuda_supports(const DflashModelDesc *desc, DflashError *error) {
  CudaOptions options = {0};
  CudaTraits traits;
  DflashStatus status = cuda_check_desc(desc, &options, error);
  if (!status) status = cuda_device_traits(desc->device, &traits, error);
  if (!status) status = cuda_check_device(desc, &options, &traits, error);
  return status;
}
