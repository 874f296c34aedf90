/* Which models and devices the fast path is for, and what it takes. */
#include "fast.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "tensors.h"

enum { MAJOR = 9, MINOR = 0 };

__attribute__((format(printf, 3, 4))) static bool decline(char *why, size_t size, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(why, size, format, list);
  va_end(list);
  return false;
}

static bool geometry_fits(const DflashGeometry *g, char *why, size_t size) {
  const struct {
    const char *name;
    int64_t value, wanted;
  } fields[] = {{"hidden", g->hidden, FAST_HIDDEN},
                {"intermediate", g->intermediate, FAST_INTERMEDIATE},
                {"heads", g->heads, FAST_HEADS},
                {"kv_heads", g->kv_heads, FAST_KV_HEADS},
                {"head_dim", g->head_dim, FAST_HEAD_DIM},
                {"conv_group", g->conv_group, FAST_CONV_GROUP},
                {"conv_kernel", g->conv_kernel, FAST_CONV_KERNEL},
                {"selector_rank", g->selector_rank, FAST_RANK}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i].value != fields[i].wanted)
      return decline(why, size, "%s is %lld, it is for %lld", fields[i].name, (long long)fields[i].value,
                     (long long)fields[i].wanted);
  if (g->layers <= FAST_MOST_LAYERS) return true;
  return decline(why, size, "layers is %lld, it is for up to %d", (long long)g->layers, FAST_MOST_LAYERS);
}

/* What the products of the stream are stored as; fc and the codebooks are none of them. */
static int32_t wanted_storage(const char *name) {
  if (strcmp(name, "fc") == 0) return -1;
  if (strcmp(name, "head") == 0 || strstr(name, "kernel_projection") || strstr(name, "hidden_projection"))
    return DFLASH_STORAGE_Q8_2F;
  return DFLASH_STORAGE_Q4TP;
}

static bool storages_fit(const DflashModelDesc *desc, char *why, size_t size) {
  for (int64_t i = 0; i < cuda_tensor_count(desc->geometry); i++) {
    const CudaTensor t = cuda_tensor_at(desc->geometry, desc->weights, NULL, i);
    const int32_t wanted = t.kind == CUDA_MATRIX ? wanted_storage(t.name) : -1;
    if (wanted < 0) continue;
    if (!t.tensor) return decline(why, size, "there is no head");
    if (t.tensor->storage != wanted)
      return decline(why, size, "%s is %s, it is for %s", t.name, cuda_storage_name(t.tensor->storage),
                     cuda_storage_name(wanted));
  }
  return true;
}

static bool device_fits(const CudaTraits *traits, char *why, size_t size) {
  if (traits->major != MAJOR || traits->minor != MINOR)
    return decline(why, size, "compute capability is %d.%d, it is for %d.%d", traits->major, traits->minor, MAJOR,
                   MINOR);
  if (traits->processors < FAST_BLOCKS)
    return decline(why, size, "the device has %d processors, it takes %d", traits->processors, FAST_BLOCKS);
  if (traits->shared_bytes >= FAST_SHARED_BYTES) return true;
  return decline(why, size, "a block has %llu bytes of shared memory, it takes %d",
                 (unsigned long long)traits->shared_bytes, FAST_SHARED_BYTES);
}

static bool memory_fits(const DflashModelDesc *desc, const CudaTraits *traits, char *why, size_t size) {
  const unsigned long long bytes = cuda_weight_bytes(desc) + cuda_fast_bytes(desc->geometry);
  if (bytes <= traits->memory_bytes) return true;
  return decline(why, size, "weights, stored and packed, take %llu bytes of %llu", bytes,
                 (unsigned long long)traits->memory_bytes);
}

bool cuda_fast_fits(const DflashModelDesc *desc, const CudaOptions *options, const CudaTraits *traits, char *why,
                    size_t size) {
  if (options->path == CUDA_PATH_PLAIN) return decline(why, size, "path is plain");
  if (desc->profile != DFLASH_PROFILE_EXACT && desc->profile != DFLASH_PROFILE_F16)
    return decline(why, size, "it is for profiles exact and f16");
  if (!geometry_fits(desc->geometry, why, size)) return false;
  if (desc->weights && !storages_fit(desc, why, size)) return false;
  return device_fits(traits, why, size) && memory_fits(desc, traits, why, size);
}

/* ---- sizes ---- */

uint64_t cuda_fast_row_bytes(int product) {
  return 2 * (uint64_t)fast_parts(product) * (uint64_t)fast_unit_bytes(product) / FAST_UNIT;
}

uint64_t cuda_fast_bytes(const DflashGeometry *g) {
  const int layers = (int)g->layers;
  uint64_t stream = 0, total = 0;
  int layer, product;
  for (int block = 0; block < FAST_BLOCKS; block++)
    for (int i = 0; (product = fast_product(i, layers, &layer)) >= 0; i++)
      stream += fast_block_bytes(product, (int)g->vocab, block);
  (void)cuda_place(&total, stream);
  (void)cuda_place(&total, (uint64_t)cuda_fast_table_words(layers) * sizeof(uint64_t));
  (void)cuda_place(&total, cuda_fast_vector_bytes(layers));
  return total;
}
