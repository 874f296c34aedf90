/* Faults of the context: from taps to rows of K and V, their positions, and what is held when. */
#include "backends/faulty/faults_context.h"
#include "backends/faulty/faults_rounds.h"

#define ABOUT(id_, kind_, stage_, about_, origin_, goldens_, exposed_by_) \
  .defect = {.id = (id_),                                                 \
             .kind = (kind_),                                             \
             .about = (about_),                                           \
             .origin = (origin_),                                         \
             .stage = (stage_),                                           \
             .goldens = (goldens_),                                       \
             .exposed_by = (exposed_by_)}

const Fault faults_context[] = {
    /* taps */
    {ABOUT("taps-swapped", "layout", "context.fc", "the first two taps are exchanged",
           "D002 turboderp-org/exllamav3#334", "tiny/main small/rewind", "two taps"),
     .stage = fault_taps_swapped},
    {ABOUT("chunk-64-repeated", "index", "context.fc", "rows past the 64th of a push are read from its first chunk",
           "generic", "context-300/main small/main", "a push above 64 rows"),
     .stage = fault_chunk_64},

    /* K and V of a row */
    {ABOUT("context-k-gain-of-q", "index", "context.k", "the context's K is normed with the gain of queries", "generic",
           "tiny/main small/rewind", "gains that differ"),
     .knobs = &fault_k_gain_of_q, .keeps = "*k_norm.weight,*q_norm.weight", .stage = fault_k_kernel},
    {ABOUT("context-k-in-bf16", "storage", "context_state.k", "the context's K is held in bf16", "generic",
           "tiny/main small/rewind", "any context"),
     .push = fault_push_in_bf16},

    /* positions */
    {ABOUT("push-at-one-position", "index", "context.k", "all rows of a push are rotated by its first position",
           "generic", "tiny/main small/rewind", "a last push of two rows"),
     .knobs = &fault_k_first_position, .keeps = "*k_norm.weight", .stage = fault_k_kernel},
    {ABOUT("chunk-32-at-push-position", "index", "context.k", "every chunk of 32 rows begins at the push's position",
           "generic", "small/main context-300/main", "a push above 32 rows"),
     .stage = fault_k_chunk_32},
    {ABOUT("context-by-index", "index", "context.k", "context rows are rotated by index, not by position", "generic",
           "tiny/window tiny/near-256 small/far", "a context that does not begin at 0"),
     .stage = fault_k_by_index},
    {ABOUT("push-position-counted", "bookkeeping", "context.k",
           "a push is rotated as if it followed the last one, whatever was rewound", "generic",
           "tiny/gap tiny/before-first", "a push that does not append"),
     .stage = fault_k_by_count},

    /* what a push holds */
    {ABOUT("push-copied-flat", "layout", "context_state.k", "K and V are copied from packed rows as if they were dense",
           "D010 natpate/ninfer-windows#4", "tiny/main small/rewind", "a push of two rows"),
     .push = fault_push_flat},
    {ABOUT("push-last-chunk-only", "bookkeeping", "context_state.k", "of a push only the last chunk of 16 rows is made",
           "D004 Blaizzy/mlx-vlm#2096", "tiny/main small/main", "a push above 16 rows"),
     .push = fault_push_tail_chunk},
    {ABOUT("taps-upload-late", "race", "context.fc", "the last row of a later push is read before it has arrived",
           "D136 Neroued/ninfer@cbff70b4d2", "tiny/many-pushes tiny/rewind small/rewind", "two pushes"),
     .push = fault_push_old_taps},
    {ABOUT("push-returns-early", "race", "attn.mix", "a block reads the last row of a push before its K is written",
           "D128 tenstorrent/tt-metal#56877", "tiny/main small/rewind", "any push"),
     .push = fault_push_late, .block = fault_block_then_late_row},
    {ABOUT("growth-drops-rows", "bookkeeping", "context_state.k", "rows are lost when the buffers grow",
           "D125 infosave2007/cmf@817539f100", "tiny/growth tiny/many-pushes", "pushes that pass a power of two"),
     .sequence_open = fault_open_without_reserve, .push = fault_push_growing_empty},
    {ABOUT("growth-drops-v", "bookkeeping", "context_state.v", "rows of V are lost when the buffers grow",
           "D125 infosave2007/cmf@817539f100", "tiny/growth tiny/many-pushes", "pushes that pass a power of two"),
     .sequence_open = fault_open_without_reserve, .push = fault_push_growing_k_only},

    /* where a push goes */
    {ABOUT("gap-forgotten", "bookkeeping", "context", "a push past the end is appended", "generic", "tiny/gap",
           "a gap between two pushes"),
     .push = fault_push_over_gap},
    {ABOUT("gap-counted", "bookkeeping", "context", "a push past the end leaves the rows between as if they were held",
           "D119 vllm-project/vllm#47930", "tiny/gap", "a gap between two pushes"),
     .push = fault_push_into_gap},
    {ABOUT("before-first-kept", "bookkeeping", "context", "a push before the first row goes to the first row",
           "generic", "tiny/before-first", "a push before what is held"),
     .push = fault_push_before_first},
    {ABOUT("empty-push-ignored", "bookkeeping", "context", "a push of no rows forgets nothing", "generic",
           "tiny/empty-push", "a push of no rows"),
     .push = fault_push_empty_ignored},
    {ABOUT("push-keeps-behind", "bookkeeping", "rewind", "rows behind a push are not forgotten", "generic",
           "tiny/main small/rewind", "a push that ends before what was held"),
     .push = fault_push_keeping_behind},

    /* rewinds */
    {ABOUT("rewind-keeps-cursor", "bookkeeping", "context_state.k",
           "a rewind changes the length, not where rows are written", "D121 osaurus-ai/vmlx-swift#281",
           "tiny/rewind windows-mixed/rewind small/rewind", "a push after a rewind"),
     .push = fault_push_at_cursor, .truncate = fault_truncate_marks_cursor},
    {ABOUT("rewind-past-ring", "bookkeeping", "context_state.k",
           "a layer keeps its window less one, and rows that a rewind brings back are empty",
           "D121 osaurus-ai/vmlx-swift#281", "windows-mixed/rewind", "a rewind of a context longer than a window"),
     .push = fault_push_past_ring, .truncate = fault_truncate_past_ring},
    {ABOUT("rewind-refused", "bookkeeping", "context", "a rewind is refused once the context is as long as the window",
           "D124 Luce-Org/lucebox#740", "windows-mixed/rewind", "a rewind of a context longer than a window"),
     .truncate = fault_truncate_refused},
    {ABOUT("rewind-one-too-many", "bookkeeping", "context", "a rewind forgets one row too many",
           "D122 lablup/mlxcel#1002", "tiny/rewind small/rewind", "a rewind"),
     .truncate = fault_truncate_one_more},
    {ABOUT("truncate-nothing", "bookkeeping", "context", "truncate does nothing", "generic",
           "tiny/rewind tiny/rewind-all small/rewind", "a rewind"),
     .truncate = fault_truncate_nothing},
    {ABOUT("truncate-past-end-shortens", "bookkeeping", "context", "a truncate past the end forgets rows", "generic",
           "tiny/reset", "a truncate past the end"),
     .truncate = fault_truncate_shortens},
    {ABOUT("truncate-past-end-lengthens", "bookkeeping", "context",
           "a truncate past the end makes the context longer, by rows never written", "D119 vllm-project/vllm#47930",
           "tiny/reset", "a truncate past the end"),
     .truncate = fault_truncate_lengthens},
    {ABOUT("truncate-moves-first", "bookkeeping", "context", "a truncate before the first row moves the first row",
           "generic", "tiny/rewind-all", "a truncate before the first row"),
     .truncate = fault_truncate_moves_first},
    {ABOUT("truncate-before-first-ignored", "bookkeeping", "context", "a truncate before the first row does nothing",
           "generic", "tiny/rewind-all", "a truncate before the first row"),
     .truncate = fault_truncate_ignored},
    {ABOUT("reset-nothing", "bookkeeping", "context", "reset does nothing", "D116 ggml-org/llama.cpp#22105",
           "tiny/reset", "a reset"),
     .reset = fault_reset_nothing},
    {ABOUT("reset-keeps-first", "bookkeeping", "context", "reset leaves the first position", "generic", "tiny/reset",
           "a reset of a context that does not begin at 0"),
     .reset = fault_reset_first_kept},
    {ABOUT("reset-keeps-length", "bookkeeping", "context", "reset leaves the length", "D116 ggml-org/llama.cpp#22105",
           "tiny/reset", "a reset"),
     .reset = fault_reset_length_kept},
    {ABOUT("open-keeps-length", "bookkeeping", "uncaptured", "a new sequence has the length of the one that ran before",
           "D116 ggml-org/llama.cpp#22105", "tiny/window tiny/hole", "a second sequence whose first push is not at 0"),
     .sequence_open = fault_open_with_length},

    /* a context given directly */
    {ABOUT("load-from-0", "bookkeeping", "load", "a loaded context begins at 0", "generic", "tiny/window tiny/hole",
           "a context that does not begin at 0"),
     .load = fault_load_from_0},
    {ABOUT("load-k-and-v-swapped", "index", "load", "K and V of a loaded context are exchanged", "generic",
           "tiny/main small/rewind", "a loaded context"),
     .load = fault_load_swapped},
    {ABOUT("load-layers-turned", "index", "load", "a loaded layer is given the rows of the next", "generic",
           "tiny/main small/rewind", "more than one layer, a loaded context"),
     .load = fault_load_layers_turned},
    {ABOUT("load-rows-missing", "bookkeeping", "load", "a loaded context counts, but its rows are not written",
           "D119 vllm-project/vllm#47930", "tiny/main small/rewind", "a loaded context"),
     .load = fault_load_rows_missing},
    {ABOUT(
         "context-of-first-block", "bookkeeping", "rounds",
         "the context's length is that of the sequence's first block, as in a captured graph: later rows are not seen",
         "D059 gittensor-ai-lab/sparkinfer#714", "tiny/main small/rewind", "a block, rows, another block"),
     .visible = fault_visible_first_length},
    {.defect = {.id = NULL}}};
