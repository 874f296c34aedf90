#include "load/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "load/hash_item.h"

#define SLICE ((uint64_t)16 << 20)

static bool grow(DflashHashList *list) {
  if (list->count < list->capacity) return true;
  size_t capacity = list->capacity ? 2 * list->capacity : 64;
  DflashHashItem *items = realloc(list->items, capacity * sizeof *items);
  if (!items) return false;
  list->items = items;
  list->capacity = capacity;
  return true;
}

static DflashHashItem *add(DflashHashList *list, const char *object, const char *separator, const char *name,
                           const char *type) {
  char *path = NULL;
  if (list->failed || !grow(list) || asprintf(&path, "%s%s%s", object, separator, name) < 0) {
    list->failed = true;
    return NULL;
  }
  DflashHashItem *item = &list->items[list->count++];
  *item = (DflashHashItem){.path = path, .type = type};
  return item;
}

void dflash_hash_i64(DflashHashList *list, const char *object, const char *name, int64_t value) {
  DflashHashItem *item = add(list, object, "/@", name, "i64");
  if (!item) return;
  item->inside.integer = value;
  item->bytes = sizeof value;
}

void dflash_hash_f64(DflashHashList *list, const char *object, const char *name, double value) {
  DflashHashItem *item = add(list, object, "/@", name, "f64");
  if (!item) return;
  item->inside.real = value;
  item->bytes = sizeof value;
}

static void set_array(DflashHashItem *item, int rank, const int64_t *shape, const void *data, uint64_t bytes) {
  item->rank = rank;
  memcpy(item->shape, shape, (size_t)rank * sizeof *shape);
  item->data = data;
  item->bytes = bytes;
}

void dflash_hash_integers(DflashHashList *list, const char *object, const char *name, const int64_t *values,
                          int64_t count) {
  DflashHashItem *item = add(list, object, "/@", name, "i64");
  if (item) set_array(item, 1, &count, values, (uint64_t)count * sizeof *values);
}

void dflash_hash_text(DflashHashList *list, const char *object, const char *name, const char *text) {
  DflashHashItem *item = add(list, object, "/@", name, "text");
  int64_t size = (int64_t)strlen(text);
  if (item) set_array(item, 1, &size, text, (uint64_t)size);
}

DflashHashItem *dflash_hash_array(DflashHashList *list, const char *object, const char *name, const char *type,
                                  int rank, const int64_t *shape, const void *data, uint64_t bytes) {
  DflashHashItem *item = add(list, object, "/", name, type);
  if (item) set_array(item, rank, shape, data, bytes);
  return item;
}

static int compare_items(const void *a, const void *b) {
  return strcmp(((const DflashHashItem *)a)->path, ((const DflashHashItem *)b)->path);
}

/* In pieces whose pages are let go again, so that hashing a file larger than memory does not push others out. */
static void feed_data(DflashSha256 *hash, const unsigned char *data, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += SLICE) {
    uint64_t size = bytes - at < SLICE ? bytes - at : SLICE;
    dflash_sha256_update(hash, data + at, size);
    if (bytes > SLICE) dflash_map_release(data + at, size);
  }
}

static void feed_item(const DflashHashItem *item, DflashSha256 *hash) {
  int64_t rank = item->rank;
  dflash_sha256_update(hash, item->path, strlen(item->path) + 1);
  dflash_sha256_update(hash, item->type, strlen(item->type) + 1);
  dflash_sha256_update(hash, &rank, sizeof rank);
  dflash_sha256_update(hash, item->shape, (size_t)rank * sizeof *item->shape);
  feed_data(hash, item->data ? item->data : &item->inside, item->bytes);
}

bool dflash_hash_feed(DflashHashList *list, DflashSha256 *hash) {
  bool good = !list->failed;
  if (good && list->count > 0) qsort(list->items, list->count, sizeof *list->items, compare_items);
  for (size_t i = 0; good && i < list->count; i++) feed_item(&list->items[i], hash);
  dflash_hash_list_close(list);
  return good;
}

void dflash_hash_list_close(DflashHashList *list) {
  for (size_t i = 0; i < list->count; i++) {
    free(list->items[i].path);
    free(list->items[i].owned);
  }
  free(list->items);
  *list = (DflashHashList){0};
}

int dflash_hash_case_order(const char *a, const char *b) {
  for (; *a && *a == *b; a++) b++;
  int left = *a ? (unsigned char)*a : '/', right = *b ? (unsigned char)*b : '/';
  return *a == *b ? 0 : left - right;
}
