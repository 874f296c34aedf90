// What the fast kernel holds in shared memory: the published geometry, the ring, a thread's place.
#ifndef DFLASH_CUDA_FAST_SHARED_CUH
#define DFLASH_CUDA_FAST_SHARED_CUH

#include "core.cuh"
namespace fast {
constexpr int H = FAST_HIDDEN, I = FAST_INTERMEDIATE, HEADS = FAST_HEADS, KV = FAST_KV_HEADS, HD = FAST_HEAD_DIM,
              REP = HEADS / KV, GROUPS = FAST_GROUPS, KROWS = FAST_KERNEL_ROWS, RANK = FAST_RANK,
              MAXL = FAST_MOST_LAYERS;
constexpr int CTAS = FAST_BLOCKS;
constexpr int QROWS = FAST_QUERY_ROWS, KVROWS = FAST_KV_ROWS, QKV = FAST_QKV_ROWS, MIX = QROWS;
constexpr int QUARTERS = FAST_DOWN_QUARTERS, KERNEL_HALVES = FAST_KERNEL_HALVES, QKV_HALVES = FAST_QKV_HALVES;
constexpr int QUERIES = REP * ROWS; // of a kv head
constexpr int SPLITS = FAST_SPLITS, ALL_SPLITS = SPLITS + 1, SPLIT_STRIDE = QUERIES * (HD + 2);
constexpr int GROUP_BYTES = FAST_GROUP_BYTES;
constexpr int UNIT = FAST_UNIT, RUNGS = CUDA_RUNGS;
constexpr int CHUNK_BYTES = 4 * (FAST_MOST_GROUPS * FAST_GROUP_BYTES + FAST_CODE_BYTES); // of a warpgroup, at most
constexpr int RING = 3;
constexpr int X_BYTES = ROWS == 8 ? 120 << 10 : 201 << 9; // half of the hidden columns; attention uses it, too
constexpr int GROUP_X_BYTES = X_BYTES / WARPGROUPS;
constexpr int K_STRIDE = 576, V_STRIDE = 528, KEYS = 32; // of the context, in a slot of all warpgroups
constexpr int EXCHANGES = 4, XCH_ROW = UNIT / 2 + 1;     // of a block's sums of a unit, [row of x][its rows]
// Slots of the context in the memory of x: a pass's chunks from FIRST_SPARE on, of which the first is keys. Of 16 rows
// those behind the first reach into red and xch: they are free behind the meeting before attention.
constexpr int FIRST_SPARE = 3, SPARES = ROWS == 16 ? 3 : PARTS == 3 ? 4 : 5, EARLY_SPARES = ROWS == 16 ? 1 : SPARES;
constexpr int SPARE_AT = X_BYTES - KEYS * (K_STRIDE + (EARLY_SPARES - 1) * V_STRIDE) - (ROWS == 16 ? 12 << 10 : 0);
__device__ __forceinline__ bool is_spare(int chunk) { return chunk >= FIRST_SPARE && chunk < FIRST_SPARE + SPARES; }
__device__ __forceinline__ int spare_at(int i) {
  return SPARE_AT + (i > 0 ? KEYS * (K_STRIDE + (i - 1) * V_STRIDE) : 0);
}
enum Product {
  PA = FAST_ATTN_KERNEL,
  QKVP = FAST_QKV,
  OP = FAST_O,
  PM = FAST_MLP_KERNEL,
  GU = FAST_GATE_UP,
  DN = FAST_DOWN,
  HEADP = FAST_HEAD,
  SELP = FAST_SELECTOR
};
typedef FastLayer Layer;
typedef FastBlock Block;

// The memory begins 1024 bytes behind a multiple of 8192.
struct Shared {
  union {
    struct {
      u64 full[WARPGROUPS][RING], empty[WARPGROUPS][RING], ladder_full[2], ladder_ready[2], ladder_empty[2],
          xbar[EXCHANGES], red_full, red_free, rows_full[WARPGROUPS], taps_full[WARPGROUPS], spare_full[SPARES],
          spare_empty[SPARES];
      CudaVisible seen[MAXL]; // of the context, by layer
      float inverse[ROWS], most[2][WARPGROUPS][4];
      alignas(16) float ladder[2][2 * UNIT]; // of a unit's rows; q8_2f: their scales
    };
    unsigned char front[7168];
  };
  float rungs[2][RUNGS][UNIT]; // a table at a multiple of 8192
  unsigned char slot[RING][WARPGROUPS * CHUNK_BYTES];
  alignas(128) unsigned char x[X_BYTES];
  float red[WARPGROUPS][ROWS * UNIT];
  float xch[EXCHANGES][2][ROWS * XCH_ROW];
  float cosine[ROWS][HD / 2], sine[ROWS][HD / 2];
};

struct Cta {
  uint32_t rank, cluster, cta, warp, lane, g, t, group, quarter; // the warpgroup, and which of its warps
  int slot;
  uint32_t parity;
  unsigned unit, syncs;
  uint32_t staged, tapped, spared; // parities of rows_full, taps_full, spare_full
  float factor;                    // x is so many times as large as its parts
};

__device__ __forceinline__ Shared &shared_of() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return *reinterpret_cast<Shared *>(memory);
}
#define AT(member) smem_of(&shared_of().member)

// ---- ring ----
__device__ __forceinline__ void next_slot(int &slot, uint32_t &parity) {
  if (++slot == RING) slot = 0, parity ^= 1;
}

// Keys of the context that a split reads: those before the anchor, from the first that row 0's window shows. They are
// counted from the start of the context's memory.
__device__ __forceinline__ void context_range(int layer, int split, int &from, int &to) {
  const CudaVisible &seen = shared_of().seen[layer];
  const int begin = (int)seen.first, end = (int)seen.end, steps = (end - begin + SPLITS * 128 - 1) / (SPLITS * 128);
  from = min(begin + split * steps * 128, end);
  to = min(from + steps * 128, end);
}
} // namespace fast

#endif
