/* safetensors files put together in memory. */
#ifndef DFLASH_TESTS_SAFETENSORS_IMAGE_H
#define DFLASH_TESTS_SAFETENSORS_IMAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/weights.h"

/* Length, header, data; NULL data gives zeros. free() releases. */
static inline unsigned char *safetensors_make(const char *header, const void *data, size_t bytes, size_t *size) {
  DflashText file = {0};
  uint64_t length = strlen(header);
  dflash_text_bytes(&file, (const char *)&length, sizeof length);
  dflash_text_append(&file, "%s", header);
  *size = file.size + bytes;
  unsigned char *out = dflash_alloc(*size, 1);
  memcpy(out, file.data, file.size);
  if (data != NULL) memcpy(out + file.size, data, bytes);
  dflash_text_free(&file);
  return out;
}

static inline void safetensors_write(const char *path, const char *header, const void *data, size_t bytes) {
  size_t size;
  unsigned char *file = safetensors_make(header, data, bytes, &size);
  assert_int_equal(dflash_write_file(path, file, size, NULL), DFLASH_OK);
  free(file);
}

/* A file in the making: entries follow one another. */
typedef struct SafetensorsImage {
  DflashText header, data;
} SafetensorsImage;

static inline void safetensors_add(SafetensorsImage *image, const char *name, const char *dtype, const int64_t *shape,
                                   int rank, const void *data, size_t bytes) {
  dflash_text_append(&image->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", image->header.size == 0 ? "{" : ",",
                     name, dtype);
  for (int i = 0; i < rank; i++) dflash_text_append(&image->header, "%s%lld", i ? "," : "", (long long)shape[i]);
  dflash_text_append(&image->header, "],\"data_offsets\":[%zu,%zu]}", image->data.size, image->data.size + bytes);
  dflash_text_bytes(&image->data, data, bytes);
}

static inline void safetensors_finish(SafetensorsImage *image, const char *path) {
  dflash_text_append(&image->header, "}");
  safetensors_write(path, image->header.data, image->data.data, image->data.size);
  dflash_text_free(&image->header);
  dflash_text_free(&image->data);
}

#endif
