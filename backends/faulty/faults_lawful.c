/* Right ways to compute the block that differ from the base's: they must pass on every golden that is named. */
#include "backends/faulty/faults_lawful.h"

/* Sums of many lengths, every storage, a cut block, far positions, few keys and many, and exact data. */
#define GOLDENS                                                                                                  \
  "tiny/main windows-mixed/rewind odd-hidden/far head-dim-80/main heads-24/main kernel-4/two-rows block-16/cut " \
  "no-rope/past-2^24 group-1/two-rows stress-order/main stress-sharp/main exact-integer/exact-integer"
#define CONV_GOLDENS                                                                                             \
  "tiny/main kernel-3/hole kernel-4/cut kernel-4/two-rows kernel-1/cut group-hidden/near-256 stress-order/main " \
  "exact-integer/exact-integer"
#define MIX_GOLDENS                                                                                                  \
  "tiny/main tiny/one-row kernel-4/empty windows-mixed/rewind windows-long/long-window block-16/main heads-24/main " \
  "stress-sharp/main context-300/main"
#define FOLD_GOLDENS                                                                                           \
  "block-16/main group-1/two-rows odd-hidden/main kernel-1/main stress-order/main stress-clustered/shortlist " \
  "code-padding/main exact-24bit/exact-24bit exact-integer/exact-integer"
#define CONTEXT_GOLDENS                                                                                               \
  "tiny/main tiny/rewind tiny/rewind-all tiny/gap tiny/before-first tiny/hole tiny/empty tiny/empty-push tiny/reset " \
  "tiny/many-pushes tiny/growth tiny/before-end windows-long/long-window context-kept/main context-kept/rewind"

#define PROFILE_GOLDENS "block-16/main code-padding/main head-dim-80/main stress-order/main stress-mean/main tiny/main"

#define LAWFUL(id_, goldens_, about_) \
  .defect = {.lawful = 1, .id = id_, .kind = "lawful", .about = about_, .origin = "generic", .goldens = goldens_}
#define KERNELS(...) .keeps = "*", .knobs = &(const FaultKernels){__VA_ARGS__}, .stage = fault_by_kernels

/* Every sum in one order. */
#define ORDER(id_, about_, order_, fused_)                                                                        \
  {                                                                                                               \
    LAWFUL(id_, GOLDENS, about_), KERNELS(.matrix = &(const FaultMatrix){.order = order_, .fused = fused_},       \
                                          .norm = &(const FaultNorm){.order = order_, .fused = fused_},           \
                                          .attention = &(const FaultAttention){.order = order_, .fused = fused_}, \
                                          .select = &(const FaultSelect){.order = order_, .fused = fused_})       \
  }
#define CONV(id_, about_, ...) \
  { LAWFUL(id_, CONV_GOLDENS, about_), KERNELS(.conv = &(const FaultConv){__VA_ARGS__}) }
#define MIX(id_, about_, ...) \
  { LAWFUL(id_, MIX_GOLDENS, about_), KERNELS(.attention = &(const FaultAttention){__VA_ARGS__}) }

/* Matrix products of a profile; a base without it computes the other stages exactly. */
#define PROFILE(id_, about_, profile_, order_)                                                                   \
  {                                                                                                              \
    .defect = {.lawful = 1,                                                                                      \
               .id = id_,                                                                                        \
               .kind = "lawful",                                                                                 \
               .about = about_,                                                                                  \
               .origin = "generic",                                                                              \
               .goldens = PROFILE_GOLDENS,                                                                       \
               .profile = DFLASH_PROFILE_##profile_},                                                            \
    KERNELS(.matrix = &(const FaultMatrix){.order = FAULT_ORDER_##order_, .profile = DFLASH_PROFILE_##profile_}) \
  }

const Fault faults_lawful[] = {
    ORDER("lawful-forward", "every sum from first to last", FAULT_ORDER_FORWARD, false),
    ORDER("lawful-forward-fused", "the same, multiply and add with one rounding", FAULT_ORDER_FORWARD, true),
    ORDER("lawful-backward", "every sum from last to first", FAULT_ORDER_BACKWARD, false),
    ORDER("lawful-backward-fused", "the same, multiply and add with one rounding", FAULT_ORDER_BACKWARD, true),
    ORDER("lawful-pairwise", "every sum by halves", FAULT_ORDER_PAIRWISE, false),
    ORDER("lawful-lanes", "every sum in 16 lanes, added in halves", FAULT_ORDER_LANES, false),
    ORDER("lawful-lanes-fused", "the same, multiply and add with one rounding", FAULT_ORDER_LANES, true),
    ORDER("lawful-blocked", "every sum in blocks of 128", FAULT_ORDER_BLOCKED, false),
    ORDER("lawful-blocked-fused", "the same, multiply and add with one rounding", FAULT_ORDER_BLOCKED, true),
    ORDER("lawful-split", "every sum in three parts, as over threads", FAULT_ORDER_SPLIT, false),
    ORDER("lawful-split-fused", "the same, multiply and add with one rounding", FAULT_ORDER_SPLIT, true),
    ORDER("lawful-f64", "every sum in f64, rounded once", FAULT_ORDER_F64, false),

    CONV("lawful-taps-backwards", "taps of the convolution summed from the last to the first", .taps_backwards = true),
    CONV("lawful-taps-apart", "base and dynamic kernel multiplied and summed apart", .apart = true),
    CONV("lawful-taps-apart-backwards", "the same from the last tap to the first", .apart = true,
         .taps_backwards = true),
    CONV("lawful-taps-fused", "multiply and add of the convolution with one rounding", .fused = true),
    CONV("lawful-residual-first", "the residual added before the taps", .residual_first = true),
    CONV("lawful-residual-first-fused", "the same, backwards and with one rounding a tap", .residual_first = true,
         .taps_backwards = true, .fused = true),

    MIX("lawful-online", "softmax online: a running maximum, sums scaled as it grows", .online = true),
    MIX("lawful-online-fused", "the same, multiply and add with one rounding", .online = true, .fused = true),
    MIX("lawful-splits-2", "keys in two parts, merged", .splits = 2),
    MIX("lawful-splits-4", "keys in four parts, merged", .splits = 4),
    MIX("lawful-splits-64", "keys in 64 parts, most of them empty where keys are few", .splits = 64),
    MIX("lawful-exp2", "exponentials to base 2", .exp2 = true),
    MIX("lawful-online-splits-exp2", "online in four parts, to base 2", .online = true, .splits = 4, .exp2 = true),

    PROFILE("lawful-i8-forward", "activations in int8, sums over groups from first to last", I8, FORWARD),
    PROFILE("lawful-i8-pairwise", "activations in int8, sums over groups by halves", I8, PAIRWISE),
    PROFILE("lawful-f16-lanes", "activations and plain weights in f16, sums in 16 lanes", F16, LANES),
    PROFILE("lawful-f16-backward", "activations and plain weights in f16, sums from last to first", F16, BACKWARD),
    PROFILE("lawful-bf16-split", "activations, weights and products in bf16, sums in three parts", BF16, SPLIT),
    PROFILE("lawful-bf16-f64", "activations, weights and products in bf16, sums in f64", BF16, F64),

    {LAWFUL("lawful-scales-folded", FOLD_GOLDENS,
            "q8_2f: activations times the column field in f32, sums times the row scale; q4tp: a scale a group's sum"),
     .keeps = "*", .stage = fault_by_folding},
    {LAWFUL("lawful-rows", GOLDENS, "rows computed in pieces of two, each on its own"), .stage = fault_by_rows},
    {LAWFUL("lawful-unrepeatable", "tiny/main block-16/cut", "bits differ between blocks, and the backend says so"),
     .keeps = "*", .stage = fault_last_bits_unpromised, .model_info = fault_unrepeatable},
    {LAWFUL("lawful-lazy", CONTEXT_GOLDENS, "rows of a push wait until a block or another call needs them"),
     .push = fault_lazy_push, .truncate = fault_lazy_truncate, .reset = fault_lazy_reset, .load = fault_lazy_load,
     .span = fault_lazy_span, .read_context = fault_lazy_read_context, .block = fault_lazy_block,
     .block_time = fault_lazy_block_time},
    {LAWFUL("lawful-rows-let-go", CONTEXT_GOLDENS,
            "without capture a layer lets rows go that its window and a rewind of 256 do not reach"),
     .sequence_open = fault_window_open, .push = fault_window_push, .truncate = fault_window_truncate,
     .span = fault_window_span, .visible = fault_window_visible},
    {.defect = {.id = NULL}}};
