/* Faults of attention: which keys are seen, by which head, with which weight, and whose rows they are. */
#include "backends/faulty/faults_attention.h"

/* One that the kernel's knobs make: found at attn.mix by its values. */
#define MIX(id_, kind_, knobs_, about_, origin_, goldens_, exposed_by_) \
  {                                                                     \
    .defect = {.id = (id_),                                             \
               .kind = (kind_),                                         \
               .about = (about_),                                       \
               .origin = (origin_),                                     \
               .stage = "attn.mix",                                     \
               .goldens = (goldens_),                                   \
               .exposed_by = (exposed_by_)},                            \
    .knobs = &(knobs_), .stage = fault_attention_mix                    \
  }

#define ABOUT(id_, kind_, stage_, about_, origin_, goldens_, exposed_by_) \
  .defect = {.id = (id_),                                                 \
             .kind = (kind_),                                             \
             .about = (about_),                                           \
             .origin = (origin_),                                         \
             .stage = (stage_),                                           \
             .goldens = (goldens_),                                       \
             .exposed_by = (exposed_by_)}

const Fault faults_attention[] = {
    /* windows */
    MIX("window-one-more", "index", fault_window_more, "a row sees one position more than its window has",
        "D053 turboderp-org/exllamav3#334", "tiny/window+1 windows-mixed/window-1 windows-long/window+1",
        "a context as long as a window"),
    MIX("window-one-less", "index", fault_window_less, "a row sees one position less than its window has",
        "D053 turboderp-org/exllamav3#334", "tiny/window tiny/window-1 windows-mixed/window-1",
        "a context as long as a window less one"),
    MIX("window-missing", "index", fault_window_missing, "windows are not applied", "generic",
        "tiny/long-window windows-mixed/rewind windows-long/long-window", "a context longer than a window"),
    MIX("window-per-block", "index", fault_window_first_row, "all rows have the window of the first one",
        "D052 wejoncy/sfllm#35", "tiny/long-window windows-long/long-window small/main",
        "a context longer than the window less the block"),
    MIX("window-of-last-row", "index", fault_window_last_row, "all rows have the window of the last one",
        "D052 wejoncy/sfllm#35", "tiny/long-window windows-long/long-window small/main",
        "a context longer than the window less the block"),
    MIX("window-on-own-rows", "index", fault_window_on_block, "the window hides rows of the block itself", "generic",
        "windows-mixed/rewind windows-mixed/short-window", "a window shorter than the block"),
    MIX("window-on-full-layer", "index", fault_window_on_full, "a layer without a window is given the default one",
        "D055 NVIDIA/TensorRT-LLM#16914", "windows-long/long-window",
        "a layer without a window, a context longer than the default window"),
    MIX("window-of-layer-0", "index", fault_window_of_layer_0, "every layer has the window of layer 0",
        "D058 vllm-project/vllm#54374", "windows-mixed/rewind windows-mixed/window-1 windows-long/long-window",
        "layers with different windows"),
    MIX("window-by-rows", "index", fault_window_by_rows, "the window counts rows, not positions", "generic",
        "tiny/hole small/hole", "a hole between the context's end and the anchor"),
    MIX("window-from-zero", "index", fault_window_from_zero,
        "context rows are numbered from 0, whatever the first position is", "generic",
        "tiny/window+1 tiny/near-256 tiny/before-end windows-mixed/window-1",
        "a context that does not begin at 0 and reaches the window's end or the anchor"),
    MIX("ring-half-window", "bookkeeping", fault_window_half, "the context is a ring of half the window",
        "D124 Luce-Org/lucebox#740", "tiny/main windows-mixed/rewind small/main",
        "a context longer than half the window"),

    /* the ends of the context */
    MIX("past-anchor", "index", fault_past_anchor, "context rows at and after the anchor are seen",
        "D131 sgl-project/SpecForge#472", "tiny/before-end", "an anchor before the context's end"),
    MIX("anchor-included", "index", fault_anchor_included, "the context row at the anchor's position is seen",
        "D131 sgl-project/SpecForge#472", "tiny/before-end", "an anchor before the context's end"),
    MIX("visible-by-block-number", "index", fault_block_number,
        "context rows after the anchor are seen when they lie in its block", "D131 sgl-project/SpecForge#472",
        "tiny/before-end", "an anchor before the context's end, not at a block's end"),
    MIX("first-key-left-out", "index", fault_first_left_out, "the context's first row is not seen", "generic",
        "tiny/one-row tiny/main small/rewind", "a context that the window leaves whole"),
    MIX("last-key-left-out", "index", fault_last_left_out, "the context's last row is not seen", "generic",
        "tiny/main tiny/one-row windows-mixed/rewind", "any context"),
    MIX("empty-range-erases-row-0", "index", fault_row_0_erased,
        "a row that sees no context writes its empty state over that of row 0", "D064 Dao-AILab/flash-attention#2842",
        "windows-mixed/rewind windows-mixed/window-1", "a window shorter than the block"),
    MIX("mask-too-small", "numerics", fault_weak_mask, "what the window hides is masked by adding -30", "generic",
        "stress-sharp/main", "scores beyond +-30 and a context longer than the window less the block"),

    /* the block's own rows */
    MIX("causal-block", "index", fault_causal, "a row sees no later row of its block", "D056 sgl-project/sglang#35209",
        "tiny/main tiny/empty small/cut", "any block"),
    MIX("causal-where-windowed", "index", fault_causal_windowed,
        "a row of a layer with a window sees no later row of its block", "D056 sgl-project/sglang#35209",
        "tiny/main windows-mixed/rewind", "a layer with a window"),
    MIX("block-keys-left-out", "index", fault_no_block_keys, "where there is a context, the block sees it alone",
        "generic", "tiny/main tiny/one-row", "any context"),
    MIX("own-key-left-out", "index", fault_no_own_key, "a row does not see itself", "generic",
        "tiny/main tiny/empty tiny/two-rows", "any block"),
    MIX("anchor-key-left-out", "index", fault_no_anchor_key, "the block's first row is not seen", "generic",
        "tiny/main tiny/empty tiny/two-rows", "any block"),
    MIX("block-keys-by-drafts", "index", fault_draft_keys, "only the rows of drafts and the anchor are seen", "generic",
        "tiny/one-draft block-16/one-draft", "fewer drafts than the block's rows less one"),
    MIX("block-keys-past-8", "index", fault_eight_block_keys, "rows of the block past the eighth are not seen",
        "generic", "block-16/main block-16/one-draft", "a block of more than 8 rows"),

    /* heads and the scale */
    MIX("kv-head-modulo", "index", fault_head_modulo, "query head a reads key head a % kv_heads", "generic",
        "tiny/main head-dim-80/main small/cut", "more than one key head, fewer than query heads"),
    MIX("kv-head-rep-one", "index", fault_head_clamped, "query head a reads key head a, the last where there is none",
        "generic", "tiny/main head-dim-80/main small/cut", "more than one key head, fewer than query heads"),
    MIX("kv-head-shifted", "index", fault_head_shifted, "query head a reads the key head of a + 1", "generic",
        "tiny/main kernel-3/main", "more than one key head"),
    MIX("scale-missing", "numerics", fault_scale_none, "scores are not scaled", "generic", "tiny/main small/cut",
        "any block"),
    MIX("scale-of-hidden", "numerics", fault_scale_hidden, "the scale is taken from hidden / heads", "D074 generic",
        "head-dim-80/main heads-24/main", "heads * head_dim other than hidden"),
    MIX("scale-squared", "numerics", fault_scale_squared, "scores are divided by head_dim, not by its root", "generic",
        "tiny/main small/cut", "any block"),
    MIX("scale-of-padded-head", "numerics", fault_scale_padded,
        "the scale is taken from head_dim padded to a power of two", "D074 generic",
        "head-dim-80/main head-dim-96/main", "a head_dim that is no power of two"),

    /* the softmax */
    MIX("softmax-no-max", "numerics", fault_no_max, "the largest score is not subtracted", "generic",
        "stress-sharp/main stress-sharp/rewind", "scores above 88"),
    MIX("softmax-null-key", "numerics", fault_null_key, "the denominator has one more term, of score 0", "generic",
        "tiny/main tiny/empty small/cut", "any block"),
    MIX("softmax-plus-one", "numerics", fault_plus_one, "1 is added to the sum of exponentials", "generic",
        "tiny/main tiny/empty small/cut", "any block"),
    MIX("softmax-not-divided", "numerics", fault_no_division, "the sum of values is not divided", "generic",
        "tiny/main small/cut", "any block"),
    MIX("exp-in-half", "numerics", fault_half_exp, "exponentials are taken and kept in f16", "generic",
        "tiny/main small/main", "any block"),
    MIX("weights-in-bf16", "storage", fault_bf16_weights, "softmax weights are rounded to bf16 before V", "generic",
        "tiny/main small/main", "any block"),
    MIX("first-key-twice", "index", fault_first_twice, "the first key that a row sees counts twice", "generic",
        "tiny/main tiny/empty small/cut", "any block"),

    /* parts and tiles */
    MIX("merge-unscaled", "numerics", fault_merge_unscaled,
        "three parts of the keys are added without scaling them to one maximum", "generic", "tiny/main small/cut",
        "more than one part"),
    MIX("empty-split-nan", "numerics", fault_merge_empty, "a part without keys gives (-inf) - (-inf)",
        "D061 flashinfer-ai/flashinfer#4401", "tiny/main tiny/empty", "more parts than keys"),
    MIX("stale-split-slots", "memory", fault_stale_slots, "slots of parts that were not run are merged too",
        "D065 vllm-project/vllm-xpu-kernels#528", "tiny/main windows-mixed/rewind", "fewer parts than slots"),
    MIX("tail-of-16-lost", "index", fault_tail_16, "keys past the last whole tile of 16 are lost", "generic",
        "tiny/main small/main", "a number of keys that is no multiple of 16"),
    MIX("tail-of-32-lost", "index", fault_tail_32, "keys past the last whole tile of 32 are lost", "generic",
        "small/main windows-long/long-window", "more than 32 keys, no multiple of 32"),
    {ABOUT("splits-of-block-before", "bookkeeping", "sequences",
           "the number of tiles of keys is that of the block before, of another sequence",
           "D059 gittensor-ai-lab/sparkinfer#714", "small/main", "a long context after a short one"),
     .block = fault_block_note, .visible = fault_see_tiles_of_other},

    /* rows of another place */
    MIX("index-8-bits", "index", fault_index_8_bits, "a row's index in the context is held in 8 bits",
        "D073 syv-ai/qwen38-27b-rtx3090#86", "context-300/main", "a context above 256 rows"),
    MIX("value-of-next-row", "index", fault_value_after, "V is read one row after K", "generic",
        "tiny/main small/rewind", "a context of two rows"),
    MIX("row-stride-of-power", "layout", fault_row_stride, "K is read with rows as long as a power of two of channels",
        "D067 Atlas-Inf/atlas#21", "head-dim-80/main head-dim-96/main", "a head_dim that is no power of two"),
    {ABOUT("wide-heads-skipped", "memory", "attn.mix", "the kernel does nothing for heads above 80 channels",
           "D068 infosave2007/cmf@5b86f1f285", "head-dim-96/main", "a head_dim above 80"),
     .stage = fault_wide_heads_skipped},
    {ABOUT("mix-transposed", "layout", "attn.mix", "the result is laid out head by head, not row by row", "generic",
           "tiny/main tiny/empty small/cut", "more than one head"),
     .stage = fault_mix_transposed},
    {ABOUT("empty-range-nan-in-row-0", "numerics", "attn.mix", "a first row that sees no context is 0/0",
           "D062 ikawrakow/ik_llama.cpp#2344", "tiny/empty", "an empty context"),
     .stage = fault_empty_is_nan},
    {.defect = {.id = "reducer-reused",
                .kind = "race",
                .about = "now and then the last head has the result of the head before",
                .origin = "D070 Neroued/ninfer@3e0b5daeaa",
                .stage = "repeat",
                .goldens = "tiny/main",
                .exposed_by = "some repeats of one block",
                .repeat = 16},
     .stage = fault_previous_head},
    {ABOUT("v-of-previous-block", "order", "attn.v_proj", "V keeps the values of the block before",
           "D037 infosave2007/cmf@6e1ea11d0a", "tiny/main small/cut",
           "a block after another, or spare values poisoned"),
     .stage = fault_v_of_previous_block},
    {ABOUT("context-k-of-layer-0", "index", "attn.mix", "every layer reads the context's K of layer 0", "generic",
           "tiny/main small/rewind", "more than one layer"),
     .visible = fault_see_k_of_layer_0},
    {ABOUT("context-v-of-layer-before", "index", "attn.mix", "a layer reads the context's V of the layer before",
           "generic", "tiny/main small/rewind", "more than one layer"),
     .visible = fault_see_v_of_layer_before},
    {ABOUT("context-k-and-v-swapped", "index", "attn.mix", "K and V of the context are exchanged", "generic",
           "tiny/main small/rewind", "any context"),
     .visible = fault_see_v_as_k},
    {ABOUT("tile-scale-past-end", "storage", "attn.mix",
           "the scale of 8 rows of K is taken over rows past the context's end too", "D071 Xilinx/mlir-air#1942",
           "tiny/main tiny/one-row", "a context that is no multiple of 8, spare rows poisoned"),
     .visible = fault_see_tile_scale},
    {ABOUT("block-over-live-rows", "memory", "context_state.k", "the block's K and V stand in the context's last rows",
           "D118 vllm-project/vllm#42971", "tiny/main small/rewind", "any context"),
     .stage = fault_block_over_live_rows},
    {ABOUT("positions-of-other-sequence", "bookkeeping", "sequences",
           "after another sequence's block, the context begins where that sequence's does",
           "D130 spiritbuun/buun-llama-cpp#107", "tiny/main", "two sequences in turn that begin elsewhere"),
     .block = fault_block_note, .visible = fault_see_first_of_other},
    {.defect = {.id = NULL}}};
