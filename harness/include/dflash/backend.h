/* The interface between the harness and a backend.
 *
 * A backend is a shared object that exports one symbol, dflash_backend, of type
 * DflashBackendEntry. It includes only the headers of this folder and is loaded
 * at run time. ABI rules: the entry's struct begins with its size and version;
 * members are only ever added at the end; every struct that crosses the boundary
 * begins with struct_size, set by whoever made it, and a reader uses no member past
 * it. Optional members may be NULL; the comment says what their absence means.
 *
 * Threads: the harness calls a backend from one thread at a time.
 * Units: sizes in bytes, times in nanoseconds, rates per second, positions and rows in elements.
 * Ownership: what a caller passes in belongs to the caller and is read only until the
 * call returns (weights too: model_open copies or converts what it needs). Handles
 * belong to the backend; on failure an open writes NULL. close accepts NULL.
 * Errors: DflashStatus plus one line in DflashError. A call that fails leaves its
 * sequence as it was, unless it says DFLASH_DEVICE_LOST.
 */
#ifndef DFLASH_BACKEND_H
#define DFLASH_BACKEND_H

#include <stdint.h>

#include "dflash/geometry.h"
#include "dflash/stages.h"
#include "dflash/status.h"
#include "dflash/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DFLASH_BACKEND_ABI 1

/* Arithmetic profiles. */
enum { DFLASH_PROFILE_EXACT, DFLASH_PROFILE_I8, DFLASH_PROFILE_F16, DFLASH_PROFILE_BF16, DFLASH_PROFILE_COUNT };

typedef struct DflashModel DflashModel;       /* weights resident on one device */
typedef struct DflashSequence DflashSequence; /* one context on a model */

typedef struct DflashDevice {
  uint32_t struct_size;
  int32_t is_cpu;        /* 1: a host processor or a software device; its times are CPU times */
  uint64_t memory_bytes; /* 0: not known */
  char id[64];           /* what --device takes */
  char name[128];
  char driver[128]; /* library or driver with its version */
} DflashDevice;

typedef struct DflashOption {
  const char *key, *value;
} DflashOption;

/* What is to be opened. weights is NULL when only support is asked for. */
typedef struct DflashModelDesc {
  uint32_t struct_size;
  int32_t profile;    /* DFLASH_PROFILE_* */
  const char *device; /* an id from devices(); NULL or "": the backend's first choice */
  const DflashGeometry *geometry;
  const DflashWeights *weights;
  const DflashOption *options; /* an unknown key or bad value is DFLASH_INVALID_ARGUMENT, naming the known ones */
  uint32_t option_count;
} DflashModelDesc;

/* How a backend computes one stage of an open model. */
typedef struct DflashStageInfo {
  uint32_t struct_size;
  int32_t materialised;  /* 1: read_stage gives its values after a captured block */
  int32_t covered_by;    /* DFLASH_STAGE_*: the next materialised stage when it is not, else itself */
  int32_t alone;         /* 1: stage() can run it on given inputs, by the kernel of production */
  int32_t dispatch;      /* stages with equal numbers run fused in one dispatch; any numbering */
  uint64_t weight_bytes; /* bytes of weights that one block reads for it, in the form held here */
  char path[96];         /* kernel and form, for example "rows8 f32, 2 threads" */
} DflashStageInfo;

typedef struct DflashModelInfo {
  uint32_t struct_size;
  int32_t repeatable;      /* 1: equal calls give equal bits */
  uint64_t resident_bytes; /* memory that the model holds */
  char path[256];          /* one line: forms, threads, library */
} DflashModelInfo;

enum {
  DFLASH_SEQUENCE_CAPTURE = 1 /* keep every materialised stage of the last push and block for read_stage */
};

typedef struct DflashSequenceDesc {
  uint32_t struct_size;
  uint32_t flags;       /* DFLASH_SEQUENCE_* */
  int64_t reserve_rows; /* context rows to expect; a hint */
} DflashSequenceDesc;

/* The tokens of a block. Arrays belong to the caller. */
typedef struct DflashTokens {
  uint32_t struct_size;
  int32_t *chosen;     /* [n_draft] */
  int32_t *plain;      /* [n_draft], each row's own top token */
  int32_t *candidates; /* [n_draft, selector_top] or NULL */
  float *scores;       /* [n_draft, selector_top] or NULL */
} DflashTokens;

enum {
  DFLASH_BLOCK_STAMP = 1 /* take a time stamp at every stage boundary, for block_spans */
};

typedef struct DflashBlockCall {
  uint32_t struct_size;
  uint32_t flags; /* DFLASH_BLOCK_* */
  int64_t anchor_pos, anchor_token;
  int64_t rows;       /* 2 .. geometry.block */
  int64_t n_draft;    /* 1 .. rows - 1 */
  int64_t head_width; /* selector_top .. vocab */
  const float *h;     /* [rows, hidden], embeddings of [anchor, MASK, ...] */
  DflashTokens *tokens;
  float *logits;          /* [n_draft, head_width] or NULL */
  float *selector_hidden; /* [n_draft, selector_rank] or NULL */
} DflashBlockCall;

/* One stage on given inputs. Input i is the whole value of the stage's input i in the
 * stage table, in f32: [rows of that input, its width]. Which sizes count is the stage's affair. */
typedef struct DflashStageCall {
  uint32_t struct_size;
  int32_t stage;    /* DFLASH_STAGE_* */
  int64_t layer;    /* 0 for a stage of scope ONCE */
  int64_t rows;     /* block rows, or rows of the push for context.* */
  int64_t position; /* of row 0: anchor_pos, or the push's for context.* */
  int64_t n_draft, head_width, anchor_token;
  int64_t context_first, context_len; /* of HELD_K and HELD_V */
  const float *inputs[DFLASH_STAGE_INPUTS];
  float *output;        /* the stage's value; NULL for select */
  DflashTokens *tokens; /* select only */
} DflashStageCall;

/* A piece of the last block's time. Spans that share a dispatch are reported once, under the
 * stage that the dispatch materialises. begin and end count from the block's start. */
typedef struct DflashSpan {
  int32_t stage;
  int32_t layer;
  uint64_t begin_ns, end_ns;
} DflashSpan;

enum { DFLASH_CLOCK_HOST, DFLASH_CLOCK_DEVICE };

typedef struct DflashBlockTime {
  uint32_t struct_size;
  int32_t clock;          /* DFLASH_CLOCK_*: whose clock */
  uint64_t device_ns;     /* the last block, by that clock: first work to last result */
  uint64_t resolution_ns; /* measured step of that clock, at least 1 */
  uint64_t context_ns;    /* settling of waiting context rows before it, not in device_ns */
} DflashBlockTime;

typedef struct DflashDeviceState {
  uint32_t struct_size;
  uint32_t valid;      /* bit per member below, in order; 0: not readable */
  double clock_hz;     /* bit 0 */
  double memory_hz;    /* bit 1 */
  double celsius;      /* bit 2 */
  double watts;        /* bit 3 */
  uint64_t throttle;   /* bit 4: the driver's reason bits */
  int32_t other_users; /* bit 5: other processes on the device */
} DflashDeviceState;

typedef struct DflashBackend {
  uint32_t struct_size; /* sizeof(DflashBackend) of the header it was built with */
  uint32_t abi;         /* DFLASH_BACKEND_ABI */
  const char *name;     /* "reference"; what --backend takes */
  const char *version;
  const char *about;   /* one line */
  const char *options; /* one line: the keys that model_open takes, with values and defaults */

  /* Devices that can be opened now. Fills up to capacity, sets *count to how many exist.
   * None at all: DFLASH_UNAVAILABLE with the reason (no driver, no loader). */
  DflashStatus (*devices)(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error);

  /* Can this geometry and profile run on this device with these options? DFLASH_OK, or
   * DFLASH_UNSUPPORTED / DFLASH_UNAVAILABLE / DFLASH_INVALID_ARGUMENT with the reason. */
  DflashStatus (*supports)(const DflashModelDesc *desc, DflashError *error);

  /* Weights, and head when present, resident; uploads finished on return. */
  DflashStatus (*model_open)(const DflashModelDesc *desc, DflashModel **model, DflashError *error);
  void (*model_close)(DflashModel *model);
  DflashStatus (*model_info)(const DflashModel *model, DflashModelInfo *info, DflashError *error);
  /* rows: block rows (or rows of a push for context.*) that the answer is for. */
  DflashStatus (*stage_info)(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                             DflashStageInfo *info, DflashError *error);

  DflashStatus (*sequence_open)(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                DflashError *error);
  void (*sequence_close)(DflashSequence *sequence);

  /* Context bookkeeping. Held are positions first <= p < first + len.
   * push: pos inside: rows from pos on are forgotten, then `rows` new ones follow; pos == first + len
   * appends; pos past that or before first starts over at pos. No rows: the same and nothing follows.
   * truncate: forgets from pos on; past the end nothing, at or before first len is 0, first stays.
   * reset: forgets everything, first is 0. load: first, len and every row, given directly:
   * k[layer], v[layer] each [len, kv_heads, head_dim], k normed and rotated.
   * A rewind deeper than the rows that a windowed layer keeps is DFLASH_CONTEXT_LOST and changes nothing. */
  DflashStatus (*push)(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error);
  DflashStatus (*truncate)(DflashSequence *sequence, int64_t pos, DflashError *error);
  DflashStatus (*reset)(DflashSequence *sequence, DflashError *error);
  DflashStatus (*load)(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                       const float *const *v, DflashError *error);
  /* What is held: first, len (waiting rows counted), and the first position that `layer` still keeps. */
  DflashStatus (*span)(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                       DflashError *error);
  /* K and V of `layer` at positions pos .. pos + rows, each [rows, kv_heads, head_dim]; settles waiting
   * rows first. A position not kept is DFLASH_CONTEXT_LOST, one never held DFLASH_INVALID_ARGUMENT. */
  DflashStatus (*read_context)(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                               DflashError *error);

  /* One block on the production path. No allocation inside. NaN in what the tokens are chosen from is
   * DFLASH_NONFINITE; the stage values remain readable then. */
  DflashStatus (*block)(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
  /* A stage alone, entering the production kernel. Not possible for it: DFLASH_UNSUPPORTED. */
  DflashStatus (*stage)(DflashSequence *sequence, const DflashStageCall *call, DflashError *error);
  /* A materialised stage of the last block (of the last push for context.*) of a capturing sequence.
   * count: elements of values; must be the stage's size. */
  DflashStatus (*read_stage)(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                             DflashError *error);
  DflashStatus (*block_time)(DflashSequence *sequence, DflashBlockTime *time, DflashError *error);
  /* Spans of the last stamped block, in order of begin. *count: how many exist. */
  DflashStatus (*block_spans)(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                              DflashError *error);

  /* ---- optional ---- */

  /* Pushes the last-level cache's contents out. Absent: --cold is refused. */
  DflashStatus (*evict_caches)(DflashModel *model, DflashError *error);
  /* Bytes per second of the best of several streaming reads of at least 4 times the last-level cache,
   * with the threads or compute units that a block uses. Absent: no roofline for bandwidth. */
  DflashStatus (*measure_read)(DflashModel *model, double *bytes_per_second, DflashError *error);
  /* Operations per second (multiply and add are two) of a large f32 matrix product. Absent: none. */
  DflashStatus (*measure_matrix)(DflashModel *model, double *operations_per_second, DflashError *error);
  /* Best time of the vendor library's plain call (sgemm and the like, f32) for a matrix stage on the very
   * matrix held, for `rows` rows. DFLASH_UNSUPPORTED where the stage is no matrix product. Absent: no such row. */
  DflashStatus (*library_time)(DflashModel *model, int32_t stage, int64_t layer, int64_t rows, uint64_t *ns,
                               DflashError *error);
  /* Absent: state unknown. */
  DflashStatus (*device_state)(DflashModel *model, DflashDeviceState *state, DflashError *error);
  /* Fills every scratch and spare row of the sequence with this 32-bit pattern, so that reading what
   * was not written shows. Absent: scratch is not poisoned, and reports say so. */
  DflashStatus (*poison)(DflashSequence *sequence, uint32_t pattern, DflashError *error);
} DflashBackend;

/* The exported symbol: `const DflashBackend *dflash_backend(void)`. The struct is static and lives
 * as long as the shared object is loaded. */
typedef const DflashBackend *(*DflashBackendEntry)(void);
#define DFLASH_BACKEND_SYMBOL "dflash_backend"

#if defined(__GNUC__)
#define DFLASH_BACKEND_EXPORT __attribute__((visibility("default")))
#else
#define DFLASH_BACKEND_EXPORT
#endif

#ifdef __cplusplus
}
#endif
#endif
