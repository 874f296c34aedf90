#include <cstddef>

#include "test_headers.h"

static const size_t layout[] = {HEADER_LAYOUT};

const size_t *cxx_layout(size_t *count) {
  *count = sizeof layout / sizeof *layout;
  return layout;
}
