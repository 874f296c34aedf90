/* CMF files put together in memory, to be damaged. Shares nothing with the writer under test but the hash. */
#ifndef DFLASH_TESTS_CMF_IMAGE_H
#define DFLASH_TESTS_CMF_IMAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/sidecar.h"
#include "model/storage.h"

enum { IMAGE_TENSORS_MAX = 64, IMAGE_HEADER_AT = 128 };

typedef struct ImageTensor {
  char name[128];
  uint8_t dtype, rank;
  uint32_t shape[6];
  uint64_t bytes;
} ImageTensor;

typedef struct Image {
  unsigned char *bytes; /* 64-byte aligned */
  uint64_t size, header_bytes, directory, directory_bytes, data;
  int count;
  uint64_t pool; /* offset of the name pool in the file */
} Image;

static inline void put_u16(unsigned char *at, uint16_t value) { memcpy(at, &value, sizeof value); }
static inline void put_u32(unsigned char *at, uint32_t value) { memcpy(at, &value, sizeof value); }
static inline void put_u64(unsigned char *at, uint64_t value) { memcpy(at, &value, sizeof value); }
static inline uint64_t get_u64(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* Hashes of header and directory anew. */
static inline void image_seal(Image *image) {
  put_u64(image->bytes + 112, dflash_hash64(image->bytes + IMAGE_HEADER_AT, image->header_bytes));
  put_u64(image->bytes + 120, dflash_hash64(image->bytes + image->directory, image->directory_bytes));
}

static inline unsigned char *image_record(const Image *image, int index) {
  return image->bytes + image->directory + 16 + 56 * (uint64_t)index;
}

static inline unsigned char *image_tensor_data(const Image *image, int index) {
  return image->bytes + image->data + get_u64(image_record(image, index) + 32);
}

/* Bytes that are finite values in every storage. */
static inline void image_fill(unsigned char *at, uint64_t bytes, int salt) {
  for (uint64_t i = 0; i < bytes; i++) at[i] = (unsigned char)((i * 7 + (uint64_t)salt) % 60);
}

static inline void image_put_record(Image *image, int index, const ImageTensor *tensor, uint64_t name,
                                    uint64_t offset) {
  unsigned char *at = image_record(image, index);
  size_t length = strlen(tensor->name);
  memcpy(image->bytes + image->pool + name, tensor->name, length);
  put_u32(at, (uint32_t)name);
  put_u16(at + 4, (uint16_t)length);
  at[6] = tensor->dtype;
  at[7] = tensor->rank;
  for (int i = 0; i < 6; i++) put_u32(at + 8 + 4 * i, tensor->shape[i]);
  put_u64(at + 32, offset);
  put_u64(at + 40, tensor->bytes);
  image_fill(image->bytes + image->data + offset, tensor->bytes, index);
  put_u64(at + 48, dflash_hash64(image->bytes + image->data + offset, tensor->bytes));
}

static inline void image_put_envelope(Image *image, uint64_t data_bytes) {
  const uint64_t sections[6] = {IMAGE_HEADER_AT,        image->header_bytes, image->directory,
                                image->directory_bytes, image->data,         data_bytes};
  memcpy(image->bytes, "CMF\x01", 4);
  put_u32(image->bytes + 4, 2);
  put_u32(image->bytes + 12, 5);
  for (int i = 0; i < 6; i++) put_u64(image->bytes + 16 + 8 * i, sections[i]);
}

static inline Image image_make(const char *header, const ImageTensor *tensors, int count) {
  uint64_t names = 0, data_bytes = 0, name = 0, offset = 0;
  for (int i = 0; i < count; i++) {
    names += strlen(tensors[i].name);
    data_bytes = (data_bytes + 63) / 64 * 64 + tensors[i].bytes;
  }
  Image image = {.header_bytes = strlen(header), .count = count};
  image.directory = IMAGE_HEADER_AT + image.header_bytes;
  image.directory_bytes = 16 + 56 * (uint64_t)count + names;
  image.pool = image.directory + 16 + 56 * (uint64_t)count;
  image.data = (image.directory + image.directory_bytes + 4095) / 4096 * 4096;
  image.size = image.data + data_bytes;
  image.bytes = dflash_alloc(image.size, 1);
  memcpy(image.bytes + IMAGE_HEADER_AT, header, image.header_bytes);
  put_u64(image.bytes + image.directory, (uint64_t)count);
  put_u64(image.bytes + image.directory + 8, image.pool - image.directory);
  for (int i = 0; i < count; i++) {
    image_put_record(&image, i, &tensors[i], name, offset);
    name += strlen(tensors[i].name);
    offset = (offset + tensors[i].bytes + 63) / 64 * 64;
  }
  image_put_envelope(&image, data_bytes);
  image_seal(&image);
  return image;
}

static inline void image_free(Image *image) { free(image->bytes); }

/* A small drafter with every storage in it. */
static inline DflashGeometry image_geometry(void) {
  DflashGeometry geometry = {.hidden = 32, .intermediate = 32, .layers = 1, .heads = 2, .kv_heads = 1, .head_dim = 16};
  geometry.vocab = 5;
  geometry.block = 2;
  geometry.mask_token = 4;
  geometry.conv_group = 16;
  geometry.conv_kernel = 2;
  geometry.selector_rank = 2;
  geometry.selector_top = 2;
  geometry.target_layers = 3;
  geometry.rope_theta = 1e4;
  geometry.eps = 1e-6;
  geometry.taps = (DflashList){.count = 2, .at = {0, 2}};
  return geometry;
}

static const char image_header[] =
    "{\"arch\":{\"arch_name\":\"dflash2_sidecar\"},\"provenance\":{\"dflash\":{\"hidden\":32,\"intermediate\":32,"
    "\"layers\":1,\"heads\":2,\"kv_heads\":1,\"head_dim\":16,\"vocab\":5,\"block\":2,\"mask_token\":4,"
    "\"conv_group\":16,\"conv_kernel\":2,\"selector_rank\":2,\"selector_top\":2,\"taps\":[0,2],\"target_layers\":3,"
    "\"window\":0,\"rope_theta\":10000.0,\"eps\":1e-06},\"base_binding\":{\"trunk_hash64\":\"00c0ffee\"}}}";

/* The tensors of image_geometry in their published storages; returns how many. */
static inline int image_sidecar_tensors(ImageTensor tensors[IMAGE_TENSORS_MAX]) {
  const DflashGeometry geometry = image_geometry();
  int count = (int)dflash_weight_count(&geometry);
  for (int i = 0; i < count; i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&geometry, i, &entry);
    tensors[i] = (ImageTensor){.dtype = (uint8_t)entry.sidecar_storage, .rank = (uint8_t)entry.rank};
    snprintf(tensors[i].name, sizeof tensors[i].name, "dflash.%s", entry.name);
    int64_t rows = 1;
    for (int k = 0; k < entry.rank; k++) tensors[i].shape[k] = (uint32_t)entry.shape[k];
    for (int k = 0; k + 1 < entry.rank; k++) rows *= entry.shape[k];
    assert_int_equal(
        dflash_storage_bytes(entry.sidecar_storage, rows, entry.shape[entry.rank - 1], &tensors[i].bytes, NULL),
        DFLASH_OK);
  }
  return count;
}

static inline Image image_sidecar(const char *header) {
  ImageTensor tensors[IMAGE_TENSORS_MAX];
  int count = image_sidecar_tensors(tensors);
  return image_make(header, tensors, count);
}

/* `text` with its first `from` replaced; free() releases. */
static inline char *text_replaced(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  assert_non_null(at);
  size_t head = (size_t)(at - text);
  char *out = malloc(strlen(text) + strlen(to) + 1);
  assert_non_null(out);
  memcpy(out, text, head);
  strcpy(out + head, to);
  strcat(out, at + strlen(from));
  return out;
}

#endif
