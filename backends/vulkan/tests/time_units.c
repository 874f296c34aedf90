/* Times the kernels for matrix units on this machine's first device, over products of the published geometry and ways
 * to cut them: a line a product with the best cut, and all of them as comma-separated lines on stderr. A development
 * tool: it checks nothing. Pipelines are made first and the device is kept busy for a while, because an idle one has
 * slow clocks. */
#include <stdio.h>
#include <stdlib.h>

#include "plan.h"
#include "units.h"

enum { LANES = 32, TILE_ROWS = 16, COPIES = 8, RUNS = 16, WARM_RUNS = 1000, STAGING = 64 << 20, ALIGN = 4096 };
#define WEIGHT_BYTES (2200ULL << 20)

typedef struct Product {
  const char *name;
  int32_t storage;
  int64_t rows, cols;
} Product;
static const Product PRODUCTS[] = {
    {"gate+up", DFLASH_STORAGE_Q4TP, 34816, 5120}, {"down", DFLASH_STORAGE_Q4TP, 5120, 17408},
    {"q+k+v", DFLASH_STORAGE_Q4TP, 6144, 5120},    {"o", DFLASH_STORAGE_Q4TP, 5120, 4096},
    {"kernel", DFLASH_STORAGE_Q8_2F, 1280, 5120},  {"head/4", DFLASH_STORAGE_Q8_2F, 62080, 5120}};
enum { PRODUCT_COUNT = sizeof PRODUCTS / sizeof *PRODUCTS };

/* Constants of the kernels but for x_tiles and parts: threads, tiles, shared_x, pieces. */
typedef struct Cut {
  uint32_t threads, tiles, shared_x, pieces;
} Cut;
static const Cut CUTS[] = {{128, 1, 0, 1}, {128, 1, 0, 2}, {64, 2, 0, 2}, {64, 1, 0, 2},
                           {128, 2, 1, 2}, {256, 2, 1, 2}, {128, 1, 1, 4}};
enum { CUT_COUNT = sizeof CUTS / sizeof *CUTS };
static const int64_t WANTED[] = {264, 528, 1056};
enum { WANTED_COUNT = sizeof WANTED / sizeof *WANTED };

static VulkanDevice device;
static VulkanPipelines pipelines;
static DflashError error;
static VulkanBuffer weights, codes, x, factors, y, found, arrivals, scales, masks;

static void need(DflashStatus status, const char *what) {
  if (!status) return;
  fprintf(stderr, "time_units: %s: %s\n", what, error.message);
  exit(1);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Words that make finite numbers of f16, and codes below 32. */
static uint32_t mixed_word(uint32_t i, uint32_t mask) {
  i = (i ^ i >> 16) * 0x7feb352dU;
  return (i ^ i >> 15) & mask;
}

/* A buffer of words: 0 of a mask of 0. */
static void open_words(VulkanBuffer *buffer, uint64_t bytes, uint32_t mask, uint32_t set) {
  const uint64_t piece = bytes < STAGING ? bytes : STAGING;
  uint32_t *words = malloc(piece);
  VulkanUpload upload = {0};
  if (!words) exit(1);
  for (uint64_t i = 0; i < piece / 4; i++) words[i] = mixed_word((uint32_t)i, mask) | set;
  need(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, bytes, "a buffer", buffer, &error), "a buffer");
  need(vulkan_upload_begin(&device, &upload, &error), "upload");
  for (uint64_t at = 0; at < bytes; at += piece) {
    const uint64_t left = bytes - at < piece ? bytes - at : piece;
    need(vulkan_upload_copy(&device, &upload, vulkan_buffer_range(buffer, at, left), words, left, &error), "upload");
  }
  need(vulkan_upload_end(&device, &upload, &error), "upload");
  free(words);
}

static void open_masks(void) {
  uint32_t words[VULKAN_UNITS_MASKS];
  VulkanUpload upload = {0};
  vulkan_units_masks(words);
  need(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, sizeof words, "masks", &masks, &error), "masks");
  need(vulkan_upload_begin(&device, &upload, &error), "upload");
  need(vulkan_upload_copy(&device, &upload, vulkan_buffer_range(&masks, 0, sizeof words), words, sizeof words, &error),
       "upload");
  need(vulkan_upload_end(&device, &upload, &error), "upload");
}

static const VulkanPipeline *pipeline_of(int32_t storage, const Cut *cut, uint32_t parts) {
  const int kernel = storage == DFLASH_STORAGE_Q4TP ? VULKAN_KERNEL_UNITS_Q4 : VULKAN_KERNEL_UNITS_Q8;
  const uint32_t constants[VULKAN_UNITS_CONSTANTS] = {cut->threads, 1, cut->tiles, cut->shared_x, parts, cut->pieces};
  const VulkanPipeline *pipeline;
  need(vulkan_pipeline_get(&device, &pipelines, kernel, constants, VULKAN_UNITS_CONSTANTS, &pipeline, &error),
       "pipeline");
  return pipeline;
}

static bool fits(int32_t storage, const Cut *cut, uint32_t parts) {
  const VulkanUnitsTile tile = {cut->threads, 1, cut->tiles, cut->shared_x, parts, cut->pieces};
  return vulkan_units_shared(&tile, storage) <= device.traits.shared_bytes;
}

static VulkanRange all_of(const VulkanBuffer *buffer) { return vulkan_buffer_range(buffer, 0, buffer->bytes); }

/* One product after the other, each on weights of its own, so that no cache holds them. */
static void add_products(VulkanSteps *steps, const VulkanPipeline *pipeline, const UnitsPush *push, int64_t bands) {
  const uint64_t bytes = (uint64_t)push->tiles * push->pieces * LANES * 16;
  uint64_t at = 0;
  for (int i = 0; i < COPIES; i++) {
    if (at + bytes > weights.bytes) at = 0;
    const VulkanRange ranges[] = {vulkan_buffer_range(&weights, at, bytes),
                                  all_of(&scales),
                                  vulkan_buffer_range(&codes, at / 16, bytes / 16),
                                  all_of(&x),
                                  all_of(&factors),
                                  all_of(&y),
                                  all_of(&found),
                                  all_of(&arrivals),
                                  all_of(&masks)};
    vulkan_steps_dispatch(
        steps, &(VulkanDispatch){
                   .pipeline = pipeline, .ranges = ranges, .push = push, .groups = {(uint32_t)bands, 1, push->splits}});
    at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  }
}

/* Nanoseconds of a product, the least of `runs`. */
static double time_product(const Product *p, const Cut *cut, uint32_t parts, int64_t wanted, int runs,
                           uint32_t *splits) {
  const int64_t tiles = vulkan_units_tiles(p->rows), pieces = vulkan_units_pieces(p->storage, p->cols);
  const int64_t bands = ceil_div(tiles, (int64_t)cut->tiles * cut->threads / LANES), steps = pieces / cut->pieces;
  const int64_t share = wanted / bands, each = ceil_div(steps, share < 1 ? 1 : share);
  *splits = (uint32_t)ceil_div(steps, each);
  const UnitsPush push = {.rows = 8,
                          .out_rows = (uint32_t)p->rows,
                          .y_stride = (uint32_t)p->rows,
                          .tiles = (uint32_t)tiles,
                          .pieces = (uint32_t)pieces,
                          .steps = (uint32_t)steps,
                          .groups = (uint32_t)vulkan_units_groups(p->storage, p->cols),
                          .x_tiles = 1,
                          .splits = *splits,
                          .split_steps = (uint32_t)each};
  VulkanSteps list = {0};
  VulkanPlan plan = {0};
  double best = 1e30;
  add_products(&list, pipeline_of(p->storage, cut, parts), &push, bands);
  need(vulkan_plan_open(&device, &list, false, 0, &plan, &error), "recording");
  for (int run = 0; run < runs; run++) {
    uint64_t ns;
    need(vulkan_plan_run(&device, &plan, &error), "running");
    need(vulkan_plan_time(&device, &plan, &ns, &error), "time stamps");
    if ((double)ns / COPIES < best) best = (double)ns / COPIES;
  }
  vulkan_plan_close(&device, &plan);
  vulkan_steps_close(&list);
  return best;
}

static void time_cuts(const Product *p, uint32_t parts) {
  const double per_weight = p->storage == DFLASH_STORAGE_Q4TP ? 0.53125 : 1,
               bytes = (double)(p->rows * p->cols) * per_weight;
  double best = 1e30;
  char text[96] = "";
  for (int c = 0; c < CUT_COUNT; c++)
    for (int w = 0; w < WANTED_COUNT && fits(p->storage, &CUTS[c], parts); w++) {
      const Cut *cut = &CUTS[c];
      uint32_t splits;
      const double ns = time_product(p, cut, parts, WANTED[w], RUNS, &splits);
      fprintf(stderr, "%s,%u,%u,%u,%u,%u,%u,%.2f\n", p->name, parts, cut->threads, cut->tiles, cut->shared_x,
              cut->pieces, splits, ns / 1e3);
      if (ns >= best) continue;
      best = ns;
      snprintf(text, sizeof text, "threads %u, tiles %u, shared_x %u, pieces %u, splits %u", cut->threads, cut->tiles,
               cut->shared_x, cut->pieces, splits);
    }
  printf("%-8s %u part%s %7.1f us %5.0f GB/s  %s\n", p->name, parts, parts == 1 ? " " : "s", best / 1e3, bytes / best,
         text);
}

int main(void) {
  bool units = false;
  need(vulkan_device_open(&(VulkanDeviceOptions){0}, &device, &error), "device");
  need(vulkan_units_probe(&device, &pipelines, &units, &error), "probe");
  if (!units) {
    fprintf(stderr, "time_units: %s has no matrix units that the kernels can use\n", device.traits.name);
    return 1;
  }
  open_words(&weights, WEIGHT_BYTES, UINT32_MAX, 0);
  open_words(&codes, WEIGHT_BYTES / 16 + ALIGN, 0x1f1f1f1f, 0);
  open_words(&x, 4 << 20, 0xbbffbbff, 0);
  open_words(&factors, 1 << 20, 0, 0x3f800000);
  open_words(&scales, 1 << 20, 0, 0x3f800000);
  open_words(&y, 8 << 20, 0, 0);
  open_words(&found, 128 << 20, 0, 0);
  open_words(&arrivals, 1 << 20, 0, 0);
  open_masks();
  for (int p = 0; p < PRODUCT_COUNT; p++)
    for (uint32_t parts = 1; parts <= 3; parts += 2)
      for (int c = 0; c < CUT_COUNT; c++)
        if (fits(PRODUCTS[p].storage, &CUTS[c], parts)) pipeline_of(PRODUCTS[p].storage, &CUTS[c], parts);
  uint32_t splits;
  time_product(&PRODUCTS[PRODUCT_COUNT - 1], &CUTS[0], 1, 0, WARM_RUNS, &splits);
  printf("%s\n", device.traits.name);
  for (int p = 0; p < PRODUCT_COUNT; p++)
    for (uint32_t parts = 1; parts <= 3; parts += 2) time_cuts(&PRODUCTS[p], parts);
  return 0;
}
