#include "fast_stream.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

enum { STEP = 16, RUNGS = 32 };
/* A column of x: one number a row of the block. */
typedef float Eight __attribute__((vector_size(8 * sizeof(float))));
typedef float Sixteen __attribute__((vector_size(16 * sizeof(float))));
template <class Column> using Sums = Column[FAST_UNIT]; /* of a unit's rows */

template <class T> T *at(CudaAddress address) { return reinterpret_cast<T *>(address); }

uint32_t word_at(const unsigned char *from) {
  uint32_t word;
  memcpy(&word, from, sizeof word);
  return word;
}

/* What a warp reads of a chunk: its first row of the unit, and where x has its first column. */
template <class Column> struct Part {
  const unsigned char *from;
  int row;
  const Column *x;
};

/* A lane's two words of one of `steps`: those of two steps lie together. */
template <class Column> const unsigned char *words_of(const Part<Column> &p, int lane, int step, int steps) {
  const bool paired = step / 2 * 2 + 1 < steps;
  return p.from + step / 2 * 512 + (paired ? lane * 16 + step % 2 * 8 : lane * 8);
}

/* A lane has columns 2 t, 2 t + 1 and the same plus 8 of rows g and g + 8: bytes 1 and 3 are row g + 8. */
template <class Column> void q8_part(const Part<Column> &p, Sums<Column> &sums) {
  for (int lane = 0; lane < 32; lane++)
    for (int half = 0; half < 2; half++) {
      Column sum = {};
      for (int step = 0; step < FAST_Q8_STEPS; step++) {
        const unsigned char *bytes = words_of(p, lane, step, FAST_Q8_STEPS) + half;
        const Column *x = p.x + step * STEP + lane % 4 * 2;
        for (int i = 0; i < 4; i++) sum += (float)(bytes[2 * i] - 128) * x[i / 2 * 8 + i % 2];
      }
      sums[p.row + lane / 4 + 8 * half] += sum;
    }
}

/* The same of two steps, as nibbles: those of row g + 8 lie four bits behind those of row g. */
template <class Column> void add_nibbles(const unsigned char *words, int half, const Column *x, Column &sum) {
  for (int step = 0; step < 2; step++) {
    const uint32_t word = word_at(words + step * 4) >> 4 * half;
    for (int i = 0; i < 4; i++)
      sum += (float)((int)(word >> (i / 2 * 8 + i % 2 * 16) & 15) - 8) * x[step * STEP + i / 2 * 8 + i % 2];
  }
}
/* The kernel takes a code as an offset in a table that has 256 bytes a rung. */
template <class Column> uint32_t code_of(const Part<Column> &p, int row, int group, int groups) {
  const uint32_t codes = word_at(p.from + groups * FAST_GROUP_BYTES + row % 8 * 8 + row / 8 * 4);
  return ((group == 4 ? codes << 5 : codes >> 5 * group) & 0x1f00) / 256;
}
template <class Column>
void q4_part(const Part<Column> &p, int groups, const float (*rungs)[RUNGS], Sums<Column> &sums) {
  for (int lane = 0; lane < 32; lane++)
    for (int group = 0; group < groups; group++)
      for (int half = 0; half < 2; half++) {
        const int row = lane / 4 + 8 * half;
        Column sum = {};
        add_nibbles(words_of(p, lane, group, groups), half, p.x + group * 2 * STEP + lane % 4 * 2, sum);
        sums[p.row + row] += rungs[p.row + row][code_of(p, row, group, groups)] * sum;
      }
}

/* Rungs of a unit's rows. */
void fill_rungs(const unsigned char *from, float (*rungs)[RUNGS]) {
  float ladders[FAST_UNIT][2];
  memcpy(ladders, from, sizeof ladders);
  for (int row = 0; row < FAST_UNIT; row++) {
    rungs[row][0] = ladders[row][0];
    for (int i = 1; i < RUNGS; i++) rungs[row][i] = rungs[row][i - 1] * ladders[row][1];
  }
}
template <class Column> void scale_rows(const unsigned char *from, Sums<Column> &sums) {
  float scales[FAST_UNIT];
  memcpy(scales, from, sizeof scales);
  for (int row = 0; row < FAST_UNIT; row++) sums[row] *= scales[row];
}

/* A block's columns of a unit; x is at the first of them. */
template <class Column> void unit_sums(const unsigned char *unit, int product, const Column *x, Sums<Column> &sums) {
  const bool q8 = fast_is_q8(product);
  float rungs[FAST_UNIT][RUNGS];
  const unsigned char *from = unit + fast_ladder_bytes(product);
  if (!q8) fill_rungs(unit, rungs);
  for (int chunk = 0; chunk < fast_chunks(product); chunk++) {
    const int before = q8 ? chunk * FAST_Q8_STEPS * STEP : fast_groups_before(product, chunk) * 2 * STEP;
    for (int warp = 0; warp < FAST_WARPS; warp++, from += fast_chunk_bytes(product, chunk) / 4) {
      const Part<Column> p = {from, warp % 4 * FAST_TILE, x + warp / 4 * fast_group_columns(product) + before};
      if (q8)
        q8_part(p, sums);
      else
        q4_part(p, fast_groups(product, chunk), rungs, sums);
    }
  }
  if (q8) scale_rows(unit, sums);
}

} // namespace

FastStream::FastStream(const FastBlock &block, int rows) : b(block), height((size_t)rows), count(0) {
  for (int i = 0; i < FAST_BLOCKS; i++) blocks.push_back(at<unsigned char>(b.stream) + at<uint64_t>(b.stream_first)[i]);
}

/* Every block of threads that has the product finds its columns' vectors, those of a warpgroup together. */
std::vector<FastValues> FastStream::vectors(int product) const {
  const int width = fast_group_columns(product), most = fast_vectors(product);
  std::vector<FastValues> all((size_t)most, FastValues(FAST_HIDDEN));
  for (int block = 0; block < FAST_BLOCKS; block++) {
    const float *from = at<float>(b.vectors + (uint64_t)fast_vectors_at(count, product, block));
    if (fast_share(product, b.head_rows, block / 2).count == 0) continue;
    for (int chunk = 0; chunk < fast_vector_chunks(product); chunk++)
      for (int group = 0; group < FAST_WARPGROUPS; group++)
        for (int v = 2 * chunk; v < std::min(2 * chunk + 2, most); v++, from += width)
          std::copy(from, from + width, all[(size_t)v].begin() + fast_first_column(product, block) + group * width);
  }
  return all;
}

FastValues FastStream::multiply(int product, const FastValues &x) {
  return height == FAST_ROWS ? multiply_columns<Eight>(product, x) : multiply_columns<Sixteen>(product, x);
}

template <class Column> FastValues FastStream::multiply_columns(int product, const FastValues &x) {
  const size_t cols = x.size() / height, rows = (size_t)fast_unit_count(product, b.head_rows) * FAST_UNIT;
  FastValues y((size_t)fast_parts(product) * height * rows);
  std::vector<Column> turned(cols);
  int layer;
  if (sizeof(Column) != height * sizeof(float) || fast_product(count++, b.layers, &layer) != product) abort();
  for (size_t n = 0; n < height; n++)
    for (size_t c = 0; c < cols; c++) turned[c][n] = x[n * cols + c];
  for (int block = 0; block < FAST_BLOCKS; block++) {
    const FastShare share = fast_share(product, b.head_rows, block / 2);
    for (int i = 0; i < share.count; i++, blocks[(size_t)block] += fast_unit_bytes(product)) {
      Sums<Column> sums = {};
      unit_sums<Column>(blocks[(size_t)block], product, &turned[(size_t)fast_first_column(product, block)], sums);
      float *to = &y[(size_t)share.part * height * rows + (size_t)(share.first + i * share.step) * FAST_UNIT];
      for (size_t row = 0; row < FAST_UNIT; row++)
        for (size_t n = 0; n < height; n++) to[n * rows + row] += sums[row][n];
    }
  }
  return y;
}
