/* A product on matrix units may leave the sums of each of its runs of columns, [row][split][width] (units.comp); the kernel
 * that reads the product adds them, in their order, and writes what the product is. ADD_SPLITS(type, name, buffer,
 * splits) makes name(row, column, width), widths and columns in elements of that type; all loads are under way at once.
 * One split is the product itself. */
#ifndef SUMS_GLSL
#define SUMS_GLSL
#define ADD_SPLITS(type, name, buffer, splits)                                                         \
  type name(uint row, uint column, uint width) {                                                       \
    const uint first_ = row * splits * width + column;                                                 \
    precise type sum_ = buffer[first_];                                                                \
    [[unroll]] for (uint split_ = 1; split_ < splits; split_++) sum_ += buffer[first_ + split_ * width]; \
    return sum_;                                                                                       \
  }
#endif
