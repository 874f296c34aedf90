#include "fibers.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

EmulatedDim threadIdx, blockIdx, gridDim;

namespace {

enum { MOST_THREADS = 1024, LANES = 32, STACK_BYTES = 256 << 10, MOST_VALUES = 128 };
enum State { RUNS, AT_WARP, AT_BLOCK, DONE };

/* ---- changing from one stack to another ---- */

#if defined(__x86_64__)
typedef void *Context;

/* Saves what a call must keep on this stack, and goes on where the other one stopped. */
extern "C" void emulated_switch(void **from, void *to);
__asm__(".text\n.globl emulated_switch\n.hidden emulated_switch\n.type emulated_switch,@function\nemulated_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size emulated_switch,.-emulated_switch\n");

/* Six registers, the function, and what would be its return address: the stack is as after a call. */
void context_make(Context *context, char *stack, void (*function)()) {
  void **top = reinterpret_cast<void **>(stack + STACK_BYTES) - 3;
  *--top = reinterpret_cast<void *>(function);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  *context = top;
}
void context_switch(Context *from, Context *to) { emulated_switch(from, *to); }
#else
typedef ucontext_t Context;
void context_make(Context *context, char *stack, void (*function)()) {
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = STACK_BYTES;
  context->uc_link = nullptr;
  makecontext(context, function, 0);
}
void context_switch(Context *from, Context *to) { swapcontext(from, to); }
#endif

struct Fiber {
  Context context;
  char *stack = nullptr;
  State state = DONE;
};

struct Warp {
  float values[LANES][MOST_VALUES];
  float result[MOST_VALUES];
  int arrived = 0; /* lanes that have given their values */
};

struct Machine {
  Fiber fibers[MOST_THREADS];
  std::vector<Warp> warps{MOST_THREADS / LANES};
  std::vector<unsigned char> shared;
  Context scheduler{};
  const std::function<void()> *kernel = nullptr;
  unsigned current = 0, threads = 0;
  bool backwards = false;
};

Machine &machine() {
  static Machine *one = new Machine; /* for the life of the process */
  return *one;
}

void begin_switch(void **fake, const char *stack, size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake, stack, bytes);
#else
  (void)fake, (void)stack, (void)bytes;
#endif
}
const void *scheduler_stack;
size_t scheduler_bytes;
void end_switch(void *fake, bool into_fiber) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, into_fiber ? &scheduler_stack : nullptr,
                                  into_fiber ? &scheduler_bytes : nullptr);
#else
  (void)fake, (void)into_fiber;
#endif
}

/* Back to the scheduler, until it lets this fiber run again. */
void wait_as(State state) {
  Machine &m = machine();
  Fiber &self = m.fibers[m.current];
  void *fake = nullptr;
  self.state = state;
  begin_switch(state == DONE ? nullptr : &fake, static_cast<const char *>(scheduler_stack), scheduler_bytes);
  context_switch(&self.context, &m.scheduler);
  end_switch(fake, true);
}

void fiber_main() {
  end_switch(nullptr, true);
  (*machine().kernel)();
  wait_as(DONE);
  abort(); /* nobody resumes a fiber that is done */
}

void resume(unsigned thread) {
  Machine &m = machine();
  void *fake = nullptr;
  m.current = thread;
  threadIdx = {thread, 0, 0};
  begin_switch(&fake, m.fibers[thread].stack, STACK_BYTES);
  context_switch(&m.scheduler, &m.fibers[thread].context);
  end_switch(fake, false);
}

void start_fibers() {
  Machine &m = machine();
  for (unsigned i = 0; i < m.threads; i++) {
    Fiber &f = m.fibers[i];
    if (!f.stack)
      f.stack = static_cast<char *>(
          mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (f.stack == MAP_FAILED) abort();
    context_make(&f.context, f.stack, fiber_main);
    f.state = RUNS;
  }
}

unsigned end_of(unsigned first) { return std::min(first + LANES, machine().threads); }

bool all_wait(unsigned first, State state) {
  Machine &m = machine();
  bool any = false;
  for (unsigned i = first; i < end_of(first); i++) {
    if (m.fibers[i].state == RUNS || (m.fibers[i].state != DONE && m.fibers[i].state != state)) return false;
    any = any || m.fibers[i].state == state;
  }
  return any;
}

void release(unsigned first, State state) {
  Machine &m = machine();
  for (unsigned i = first; i < end_of(first); i++)
    if (m.fibers[i].state == state) m.fibers[i].state = RUNS;
}

/* Until its lanes wait for the block, or are done. False: some lanes gave values, and others wait without. */
bool run_warp(unsigned first) {
  Machine &m = machine();
  do {
    for (unsigned n = 0; n < LANES; n++) {
      const unsigned i = first + (m.backwards ? LANES - 1 - n : n);
      if (i < m.threads && m.fibers[i].state == RUNS) resume(i);
    }
    if (!all_wait(first, AT_WARP)) return true;
    if (m.warps[first / LANES].arrived != 0) return false;
    release(first, AT_WARP);
  } while (true);
}

bool run_block() {
  Machine &m = machine();
  start_fibers();
  const unsigned warps = (m.threads + LANES - 1) / LANES;
  while (true) {
    for (unsigned n = 0; n < warps; n++)
      if (!run_warp((m.backwards ? warps - 1 - n : n) * LANES)) return false;
    bool done = true, together = true;
    for (unsigned i = 0; i < m.threads; i++) {
      done = done && m.fibers[i].state == DONE;
      together = together && (m.fibers[i].state == DONE || m.fibers[i].state == AT_BLOCK);
    }
    if (done) return true;
    if (!together) return false;
    for (unsigned first = 0; first < m.threads; first += LANES) release(first, AT_BLOCK);
  }
}

/* Every lane gives its values and waits; the last one to come makes the result for all. */
template <class Combine> Warp &give(const float *values, int count, Combine combine) {
  Machine &m = machine();
  Warp &warp = m.warps[m.current / LANES];
  memcpy(warp.values[m.current % LANES], values, static_cast<size_t>(count) * sizeof *values);
  if (++warp.arrived == LANES) {
    warp.arrived = 0;
    for (int n = 0; n < count; n++) warp.result[n] = combine(warp, n);
  }
  wait_as(AT_WARP);
  return warp;
}

} // namespace

unsigned char *emulated_shared() { return machine().shared.data(); }

uint64_t emulated_clock() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

void __syncthreads() { wait_as(AT_BLOCK); }
void __syncwarp() { wait_as(AT_WARP); }

void emulated_warp_sum(float *values, int count) {
  const Warp &warp = give(values, count, [](Warp &w, int n) {
    float sums[LANES];
    for (int lane = 0; lane < LANES; lane++) sums[lane] = w.values[lane][n];
    for (int offset = LANES / 2; offset > 0; offset /= 2)
      for (int lane = 0; lane < offset; lane++) sums[lane] += sums[lane + offset];
    return sums[0];
  });
  memcpy(values, warp.result, static_cast<size_t>(count) * sizeof *values);
}

float emulated_warp_max(float value) {
  return give(&value, 1,
              [](Warp &w, int n) {
                float largest = w.values[0][n];
                for (int lane = 1; lane < LANES; lane++) largest = fmaxf(largest, w.values[lane][n]);
                return largest;
              })
      .result[0];
}

/* As two words, which pass through unread. */
uint64_t emulated_warp_largest(uint64_t value) {
  float words[2];
  memcpy(words, &value, sizeof value);
  const Warp &warp = give(words, 2, [](Warp &w, int n) {
    uint64_t largest = 0;
    for (int lane = 0; lane < LANES; lane++) {
      uint64_t other;
      memcpy(&other, w.values[lane], sizeof other);
      largest = std::max(largest, other);
    }
    float halves[2];
    memcpy(halves, &largest, sizeof largest);
    return halves[n];
  });
  memcpy(&value, warp.result, sizeof value);
  return value;
}

float emulated_decode_f16(uint32_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  float size = exponent == 0 ? ldexpf(static_cast<float>(fraction), -24)
                             : ldexpf(static_cast<float>(1024 + fraction), exponent - 25);
  if (exponent == 31) size = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -size : size;
}

/* Of a number that is one, or not finite, or rounds to one. */
uint32_t emulated_encode_f16(float x) {
  const float size = fabsf(emulated_round_f16(x));
  const uint32_t sign = std::signbit(x) ? 0x8000u : 0u;
  int exponent;
  if (std::isnan(size)) return sign | 0x7e00u;
  if (std::isinf(size)) return sign | 0x7c00u;
  if (size < ldexpf(1, -14)) return sign | static_cast<uint32_t>(ldexpf(size, 24));
  const float fraction = frexpf(size, &exponent); /* [0.5, 1) */
  return sign | static_cast<uint32_t>(exponent + 14) << 10 | static_cast<uint32_t>(ldexpf(fraction, 11) - 1024);
}

static float decode_half(uint32_t bits, bool bf16) {
  return bf16 ? __uint_as_float(bits << 16) : emulated_decode_f16(bits);
}

/* Lane 4 g + t gives, of a, columns 2 t, 2 t + 1 of rows g and g + 8, then those of 8 columns more; of b the same of
 * column g. Sums in f64, rounded once. */
void emulated_multiply_tile(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, bool bf16) {
  const unsigned lane = machine().current % LANES, g = lane / 4, t = lane % 4;
  const uint32_t words[6] = {a[0], a[1], a[2], a[3], b0, b1};
  float values[12];
  for (unsigned i = 0; i < 12; i++) values[i] = decode_half(words[i / 2] >> i % 2 * 16 & 0xffffu, bf16);
  const Warp &warp = give(values, 12, [](Warp &, int) { return 0.0f; });
  for (unsigned i = 0; i < 4; i++) {
    double sum = c[i];
    for (unsigned k = 0; k < 16; k++) {
      const float *from = warp.values[g * 4 + k % 8 / 2], *with = warp.values[(2 * t + i % 2) * 4 + k % 8 / 2];
      sum +=
          static_cast<double>(from[i / 2 * 2 + k / 8 * 4 + k % 2]) * static_cast<double>(with[8 + k / 8 * 2 + k % 2]);
    }
    c[i] = static_cast<float>(sum);
  }
  wait_as(AT_WARP); /* all have read what all gave */
}

uint32_t emulated_pair_fma(uint32_t a, uint32_t b, uint32_t c, bool bf16) {
  uint32_t pair = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const float x = decode_half(a >> shift & 0xffffu, bf16), y = decode_half(b >> shift & 0xffffu, bf16);
    const float sum = x * y + decode_half(c >> shift & 0xffffu, bf16);
    pair |= (bf16 ? __float_as_uint(sum) >> 16 : emulated_encode_f16(sum)) << shift;
  }
  return pair;
}

uint32_t emulated_choose_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  uint32_t chosen = 0;
  for (int i = 0; i < 4; i++) chosen |= static_cast<uint32_t>(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return chosen;
}

/* The step of f16 at x is 2^-10 of its leading bit, at least 2^-24: x is rounded to whole steps, ties to even. */
float emulated_round_f16(float x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent;
  frexpf(x, &exponent);
  const int step = std::max(exponent - 11, -24);
  const float rounded = ldexpf(rintf(ldexpf(x, -step)), step);
  return fabsf(rounded) > 65504 ? copysignf(INFINITY, x) : rounded;
}

bool emulated_run(EmulatedDim grid, unsigned threads, size_t shared_bytes, bool backwards,
                  const std::function<void()> &kernel) {
  Machine &m = machine();
  if (threads > MOST_THREADS) return false;
  m.shared.assign(shared_bytes, 0xa5); /* what a block before left there is no value */
  m.kernel = &kernel;
  m.threads = threads;
  m.backwards = backwards;
  gridDim = grid;
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = {x, y, z};
        for (Warp &warp : m.warps) warp.arrived = 0;
        if (!run_block()) return false;
      }
  return true;
}
