#include "store/history_pack.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "store/history_columns.h"

enum { SIZE_BYTES = 4, PIECE = 1 << 16, LONG = 256 };

/* The text with its numbers taken out, into columns. */
static bool take_numbers(const char *lines, size_t size, DflashText *text, DflashColumns *columns) {
  DflashPackWalk walk = {.at = lines, .end = lines + size};
  const char *done = lines;
  while (dflash_pack_walk(&walk)) {
    char *after, mark = DFLASH_PACK_MARK;
    double value = strtod(walk.at, &after);
    DflashColumn *column = dflash_columns_of(columns, &walk);
    if (after == walk.at || !column || !dflash_column_add(column, value)) return false;
    dflash_text_bytes(text, done, (size_t)(walk.at - done));
    dflash_text_bytes(text, &mark, 1);
    walk.at = done = after;
  }
  dflash_text_bytes(text, done, (size_t)(lines + size - done));
  return !text->failed;
}

/* flush Z_BLOCK begins a block with a code of its own. */
static bool compress_some(z_stream *z, const char *data, size_t size, int flush, DflashText *pack) {
  char piece[1 << 12];
  z->next_in = (Bytef *)data;
  z->avail_in = (uInt)size;
  int result = Z_OK;
  do {
    z->next_out = (Bytef *)piece;
    z->avail_out = sizeof piece;
    result = deflate(z, flush);
    dflash_text_bytes(pack, piece, sizeof piece - z->avail_out);
  } while (z->avail_out == 0 && result == Z_OK);
  return (result == Z_OK || result == Z_BUF_ERROR || result == Z_STREAM_END) && !pack->failed;
}

/* Planes of a long column are unlike each other: each gets its own code. */
static bool compress_column(z_stream *z, const DflashColumn *column, DflashText *pack) {
  DflashText bytes = {0};
  dflash_column_encode(column, &bytes);
  bool good = !bytes.failed;
  size_t at = 0, step = column->count >= LONG ? column->count : bytes.size;
  if (step < bytes.size) { /* the head alone: what planes leave over */
    at = bytes.size % step;
    good = compress_some(z, bytes.data, at, Z_BLOCK, pack);
  }
  for (; good && at < bytes.size; at += step)
    good = compress_some(z, bytes.data + at, step, column->count >= LONG ? Z_BLOCK : Z_NO_FLUSH, pack);
  dflash_text_free(&bytes);
  return good;
}

static bool compress_all(const DflashText *text, const DflashColumns *columns, DflashText *pack) {
  z_stream z = {0};
  char size[SIZE_BYTES];
  for (int i = 0; i < SIZE_BYTES; i++) size[i] = (char)(text->size >> 8 * i);
  if (deflateInit(&z, Z_BEST_COMPRESSION) != Z_OK) return false;
  bool good = compress_some(&z, size, sizeof size, Z_NO_FLUSH, pack) &&
              compress_some(&z, text->data, text->size, Z_BLOCK, pack);
  for (size_t i = 0; good && i < columns->count; i++) good = compress_column(&z, &columns->at[i], pack);
  good = good && compress_some(&z, NULL, 0, Z_FINISH, pack);
  deflateEnd(&z);
  return good;
}

DflashStatus dflash_pack(const char *lines, size_t size, DflashText *pack, DflashError *error) {
  DflashText text = {0};
  DflashColumns columns = {0};
  if (size > DFLASH_PACK_LIMIT)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "the records of a case are %zu bytes long; at most %zu are kept", size, DFLASH_PACK_LIMIT);
  bool good = take_numbers(lines, size, &text, &columns);
  bool many = columns.count >= DFLASH_COLUMNS_MOST;
  good = good && compress_all(&text, &columns, pack);
  dflash_columns_free(&columns);
  dflash_text_free(&text);
  if (good) return DFLASH_OK;
  if (many)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "records with more than %d names of numbers are not kept",
                            DFLASH_COLUMNS_MOST);
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to pack records");
}

static DflashStatus no_pack(DflashError *error, const char *why) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "records are damaged: %s", why);
}

static DflashStatus inflate_all(const void *pack, size_t size, DflashText *bytes, DflashError *error) {
  z_stream z = {.next_in = (Bytef *)pack, .avail_in = (uInt)size};
  char *piece = malloc(PIECE);
  int result = piece && size <= DFLASH_PACK_LIMIT && inflateInit(&z) == Z_OK ? Z_OK : Z_MEM_ERROR;
  while (result == Z_OK && bytes->size <= DFLASH_PACK_LIMIT && !bytes->failed) {
    z.next_out = (Bytef *)piece;
    z.avail_out = PIECE;
    result = inflate(&z, Z_NO_FLUSH);
    dflash_text_bytes(bytes, piece, PIECE - z.avail_out);
  }
  inflateEnd(&z);
  free(piece);
  if (result == Z_MEM_ERROR || bytes->failed)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to unpack records");
  return result == Z_STREAM_END && z.avail_in == 0 ? DFLASH_OK
                                                   : no_pack(error, "the zlib stream is broken or too long");
}

/* Every mark one more number in its column. */
static bool count_marks(const char *text, size_t size, DflashColumns *columns) {
  DflashPackWalk walk = {.at = text, .end = text + size};
  while (dflash_pack_walk(&walk)) {
    DflashColumn *column = *walk.at == DFLASH_PACK_MARK ? dflash_columns_of(columns, &walk) : NULL;
    if (!column || !dflash_column_add(column, 0)) return false;
    walk.at++;
  }
  return true;
}

static bool decode_columns(DflashColumns *columns, const char *data, size_t size) {
  for (size_t i = 0; i < columns->count; i++) {
    size_t taken = dflash_column_decode(&columns->at[i], (const unsigned char *)data, size);
    if (taken == 0) return false;
    data += taken;
    size -= taken;
  }
  return size == 0;
}

static bool put_numbers(const char *text, size_t size, DflashColumns *columns, DflashText *lines) {
  DflashPackWalk walk = {.at = text, .end = text + size};
  const char *done = text;
  while (dflash_pack_walk(&walk)) {
    DflashColumn *column = dflash_columns_of(columns, &walk);
    double value = column->values[column->next++];
    char digits[40];
    if (!isfinite(value)) return false;
    dflash_text_bytes(lines, done, (size_t)(walk.at - done));
    dflash_text_bytes(lines, digits, (size_t)snprintf(digits, sizeof digits, "%.17g", value));
    done = ++walk.at;
  }
  dflash_text_bytes(lines, done, (size_t)(text + size - done));
  return true;
}

static DflashStatus rebuild(const DflashText *bytes, DflashText *lines, DflashError *error) {
  size_t size = 0;
  if (bytes->size < SIZE_BYTES) return no_pack(error, "they are too short");
  for (int i = SIZE_BYTES; i > 0; i--) size = size << 8 | (unsigned char)bytes->data[i - 1];
  if (size > bytes->size - SIZE_BYTES) return no_pack(error, "their text is cut");
  const char *text = bytes->data + SIZE_BYTES;
  DflashColumns columns = {0};
  bool good = count_marks(text, size, &columns) &&
              decode_columns(&columns, text + size, bytes->size - SIZE_BYTES - size) &&
              put_numbers(text, size, &columns, lines);
  dflash_columns_free(&columns);
  if (lines->failed) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to unpack records");
  return good ? DFLASH_OK : no_pack(error, "their numbers do not fit their text");
}

DflashStatus dflash_unpack(const void *pack, size_t size, DflashText *lines, DflashError *error) {
  DflashText bytes = {0};
  DflashStatus status = inflate_all(pack, size, &bytes, error);
  if (status == DFLASH_OK) status = rebuild(&bytes, lines, error);
  dflash_text_free(&bytes);
  return status;
}
