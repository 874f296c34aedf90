/* A catalogue of deliberate defects: what `dflash-harness selftest` runs to measure the gate itself.
 *
 * A backend that is wrong on purpose exports, beside dflash_backend, the symbol dflash_catalogue, of type
 * DflashCatalogueEntry. Its model_open takes the options "defect" (an id of the catalogue; absent: none) and "expose"
 * (all; end: nothing is materialised or entered alone but head.logits, selector.hidden and select).
 * Text is static and lives as long as the shared object is loaded. New members are only added at the end.
 */
#ifndef DFLASH_CATALOGUE_H
#define DFLASH_CATALOGUE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DflashDefect {
  uint32_t struct_size;
  int32_t lawful;    /* 1: correct arithmetic done another way, which must pass */
  const char *id;    /* "conv-taps-reversed" */
  const char *kind;  /* class: "layout", "index", "order", "numerics", "storage", "bookkeeping", "selection", "memory",
                        "time", "race"; "lawful" */
  const char *about; /* one line: what is wrong */
  /* How it came about: rows of the table of known defects and where a report stands, joined by commas ("D025
   * natpate/ninfer-windows#4"), or "generic". */
  const char *origin;
  /* Where it must be found first: the name of a stage ("attn.conv_in") or of a check that is no stage
   * ("context", "context_state.k", "repeat", "uncaptured", "block", "clock"). NULL for a lawful one. */
  const char *stage;
  /* Goldens that expose it, joined by blanks: SHAPE/CASE of golden/shapes.h ("tiny/main window/short-window"). It must
   * be found on the first. A lawful one must pass on all. */
  const char *goldens;
  const char *exposed_by; /* one line: the shapes, values or operations that it takes */
  /* NULL: also found where only end values are exposed. Else why it need not be. */
  const char *hidden;
  int64_t repeat;   /* blocks to run, as --repeat; 0: as usual. For what fails now and then */
  double timeout_s; /* 0: as usual. For what hangs */
  int32_t timing;   /* 1: a defect of the clock or the spans: found by timing a block, not by its values */
  int32_t profile;  /* DFLASH_PROFILE_* in which it runs */
} DflashDefect;

typedef struct DflashCatalogue {
  uint32_t struct_size;
  uint32_t count;
  const DflashDefect *const *defects;
} DflashCatalogue;

typedef const DflashCatalogue *(*DflashCatalogueEntry)(void);
#define DFLASH_CATALOGUE_SYMBOL "dflash_catalogue"

#ifdef __cplusplus
}
#endif
#endif
