/* Times the kernels for matrix units on this machine's first device, over products of the published geometry and ways
 * to cut them: a table for each storage and number of parts, a line a cut, the best number of splits of each product.
 * All times stand on stderr as comma-separated lines. A development tool: it checks nothing. Arguments: names of
 * products, all where there are none. Pipelines are made first, and the device is kept busy for a while, because an
 * idle one has slow clocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan.h"
#include "statistics.h"
#include "units.h"

enum { LANES = 32, TILE_ROWS = 16, COPIES = 8, RUNS = 8, WARM_RUNS = 1000, STAGING = 64 << 20, ALIGN = 4096 };
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

/* Whether w and x are read by address, and constants of the kernels but for x_tiles and parts; threads of one share. */
typedef struct Cut {
  bool addresses;
  uint32_t threads, tiles, x_way, pieces, plain, rung_step, shares;
} Cut;
static const Cut Q4_CUTS[] = {{true, 32, 2, VULKAN_X_CACHE, 2, 1, 1, 1},  {true, 64, 2, VULKAN_X_AHEAD, 2, 1, 4, 1},
                              {true, 32, 2, VULKAN_X_CACHE, 2, 1, 1, 4},  {true, 32, 2, VULKAN_X_AHEAD, 2, 1, 1, 4},
                              {true, 32, 1, VULKAN_X_CACHE, 2, 1, 1, 4},  {true, 32, 1, VULKAN_X_AHEAD, 2, 1, 1, 4},
                              {true, 32, 1, VULKAN_X_CACHE, 2, 1, 1, 8},  {true, 32, 2, VULKAN_X_CACHE, 2, 1, 1, 8},
                              {true, 32, 2, VULKAN_X_AHEAD, 2, 1, 1, 8},  {true, 32, 2, VULKAN_X_CACHE, 2, 1, 1, 17},
                              {true, 32, 1, VULKAN_X_CACHE, 2, 1, 1, 17}, {true, 32, 2, VULKAN_X_CACHE, 2, 1, 1, 2},
                              {true, 32, 4, VULKAN_X_CACHE, 2, 1, 1, 4},  {true, 32, 4, VULKAN_X_CACHE, 1, 1, 1, 4},
                              {true, 32, 2, VULKAN_X_CACHE, 1, 1, 1, 4},  {true, 32, 2, VULKAN_X_AHEAD, 1, 1, 1, 4},
                              {true, 32, 2, VULKAN_X_CACHE, 1, 1, 1, 8},  {true, 256, 2, VULKAN_X_SHARED, 2, 1, 4, 1}};
static const Cut Q8_CUTS[] = {{true, 128, 1, VULKAN_X_SHARED, 4, 0, 1, 1}, {true, 256, 2, VULKAN_X_SHARED, 2, 0, 1, 1},
                              {true, 32, 1, VULKAN_X_CACHE, 2, 0, 1, 4},   {true, 32, 1, VULKAN_X_AHEAD, 2, 0, 1, 4},
                              {true, 32, 1, VULKAN_X_CACHE, 2, 0, 1, 10},  {true, 32, 1, VULKAN_X_AHEAD, 2, 0, 1, 10},
                              {true, 32, 1, VULKAN_X_CACHE, 4, 0, 1, 10},  {true, 32, 1, VULKAN_X_CACHE, 2, 0, 1, 20},
                              {true, 32, 2, VULKAN_X_CACHE, 2, 0, 1, 4},   {true, 32, 2, VULKAN_X_AHEAD, 2, 0, 1, 4}};
#define COUNT(list) (int)(sizeof(list) / sizeof *(list))
static const int64_t WANTED[] = {264, 528, 1056, 2112};
static const char *const X_WAYS[] = {"cache", "shared", "ahead"};

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

/* The number of shares that is asked for, or the next smaller one that divides the rounds of a product. */
static uint32_t shares_of(const Cut *cut, const Product *p) {
  const int64_t rounds = vulkan_units_pieces(p->storage, p->cols) / cut->pieces / 2;
  uint32_t shares = cut->shares;
  while (rounds % shares != 0) shares--;
  return shares;
}

static VulkanUnitsTile tile_of(const Cut *cut, uint32_t parts, uint32_t shares) {
  return (VulkanUnitsTile){.threads = cut->threads * shares,
                           .x_tiles = 1,
                           .tiles = cut->tiles,
                           .x_way = cut->x_way,
                           .parts = parts,
                           .pieces = cut->pieces,
                           .plain = cut->plain && parts == 1,
                           .rung_step = cut->rung_step,
                           .shares = shares};
}

static const VulkanPipeline *pipeline_of(int32_t storage, const Cut *cut, uint32_t parts, uint32_t shares) {
  const int at = cut->addresses ? VULKAN_KERNEL_UNITS_Q4_AT - VULKAN_KERNEL_UNITS_Q4 : 0;
  const int kernel = at + (storage == DFLASH_STORAGE_Q4TP ? VULKAN_KERNEL_UNITS_Q4 : VULKAN_KERNEL_UNITS_Q8);
  const VulkanUnitsTile tile = tile_of(cut, parts, shares);
  uint32_t constants[VULKAN_UNITS_CONSTANTS];
  vulkan_units_constants(&tile, constants);
  const VulkanPipeline *pipeline;
  need(vulkan_pipeline_get(&device, &pipelines, kernel, constants, VULKAN_UNITS_CONSTANTS, &pipeline, &error),
       "pipeline");
  return pipeline;
}

static bool fits(int32_t storage, const Cut *cut, uint32_t parts) {
  const VulkanUnitsTile tile = tile_of(cut, parts, cut->shares);
  if (cut->addresses && !device.traits.addresses) return false;
  if (storage == DFLASH_STORAGE_Q4TP && parts > 1 && !cut->plain) return false; /* the same as one that is */
  return tile.threads <= device.traits.max_threads && vulkan_units_shared(&tile, storage) <= device.traits.shared_bytes;
}

static VulkanRange all_of(const VulkanBuffer *buffer) { return vulkan_buffer_range(buffer, 0, buffer->bytes); }

static void set_address(uint32_t *low, uint32_t *high, VulkanRange range) {
  const uint64_t address = vulkan_range_address(&device, range);
  *low = (uint32_t)address;
  *high = (uint32_t)(address >> 32);
}

/* One product after the other, each on weights of its own, so that no cache holds them. */
static void add_products(VulkanSteps *steps, const VulkanPipeline *pipeline, UnitsPush *push, int64_t bands) {
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
    set_address(&push->weights_low, &push->weights_high, ranges[0]);
    set_address(&push->codes_low, &push->codes_high, ranges[2]);
    set_address(&push->x_low, &push->x_high, ranges[3]);
    set_address(&push->factors_low, &push->factors_high, ranges[4]);
    vulkan_steps_dispatch(
        steps, &(VulkanDispatch){
                   .pipeline = pipeline, .ranges = ranges, .push = push, .groups = {(uint32_t)bands, 1, push->splits}});
    at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  }
}

/* Steps of a workgroup, whole rounds, where about so many workgroups are wanted. */
static int64_t steps_each(const Product *p, const Cut *cut, int64_t wanted) {
  const int64_t tiles = vulkan_units_tiles(p->rows), steps = vulkan_units_pieces(p->storage, p->cols) / cut->pieces;
  if (cut->shares > 1) return steps; /* and no splits */
  const int64_t share = wanted / ceil_div(tiles, (int64_t)cut->tiles * cut->threads / LANES);
  return ceil_div(steps, 2 * (share < 1 ? 1 : share)) * 2;
}

/* Nanoseconds of a product, the least of `runs`. */
static double time_product(const Product *p, const Cut *cut, uint32_t parts, int64_t each, int runs, uint32_t *splits) {
  const int64_t tiles = vulkan_units_tiles(p->rows), pieces = vulkan_units_pieces(p->storage, p->cols);
  const int64_t bands = ceil_div(tiles, (int64_t)cut->tiles * cut->threads / LANES), steps = pieces / cut->pieces;
  *splits = (uint32_t)ceil_div(steps, each);
  UnitsPush push = {.rows = 8,
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
  add_products(&list, pipeline_of(p->storage, cut, parts, shares_of(cut, p)), &push, bands);
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

static const Cut *cuts_of(int32_t storage, int *count) {
  const bool q4 = storage == DFLASH_STORAGE_Q4TP;
  *count = q4 ? COUNT(Q4_CUTS) : COUNT(Q8_CUTS);
  return q4 ? Q4_CUTS : Q8_CUTS;
}

/* The best number of splits, and its time in microseconds. */
static double time_splits(const Product *p, const Cut *cut, uint32_t parts, uint32_t *best_splits) {
  double best = 1e30;
  for (int w = 0; w < COUNT(WANTED); w++) {
    uint32_t splits;
    const int64_t each = steps_each(p, cut, WANTED[w]);
    if (w > 0 && each == steps_each(p, cut, WANTED[w - 1])) continue;
    const double us = time_product(p, cut, parts, each, RUNS, &splits) / 1e3;
    fprintf(stderr, "%s,%u,%s,%u,%u,%s,%u,%u,%u,%u,%u,%.2f\n", p->name, parts, cut->addresses ? "address" : "binding",
            cut->threads, cut->tiles, X_WAYS[cut->x_way], cut->pieces, cut->plain, cut->rung_step, shares_of(cut, p),
            splits, us);
    if (us < best) {
      best = us;
      *best_splits = splits;
    }
  }
  return best;
}

static bool named(const Product *p, char **names, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], p->name) == 0) return true;
  return count == 0;
}

static void print_header(int32_t storage, uint32_t parts, char **names, int count) {
  printf("\n%s, %u part%s of x: microseconds / splits\n%-50s", storage == DFLASH_STORAGE_Q4TP ? "q4tp" : "q8_2f", parts,
         parts == 1 ? "" : "s", "reads  threads tiles x pieces plain rungs shares | registers shared");
  for (int p = 0; p < PRODUCT_COUNT; p++)
    if (PRODUCTS[p].storage == storage && named(&PRODUCTS[p], names, count)) printf(" %12s", PRODUCTS[p].name);
  printf("\n");
}

/* With what decides how many subgroups a multiprocessor has room for. */
static void print_cut(int32_t storage, const Cut *cut, uint32_t parts) {
  VulkanStatistics statistics = {0};
  const VulkanUnitsTile tile = tile_of(cut, parts, cut->shares);
  if (device.statistics)
    need(vulkan_statistics_read(&device, pipeline_of(storage, cut, parts, cut->shares), &statistics, &error),
         "statistics");
  printf("%-7s %5u %3u %-6s %u  %u  %u %2u | %3llu regs %4llu spilled %5llu B", cut->addresses ? "address" : "binding",
         cut->threads, cut->tiles, X_WAYS[cut->x_way], cut->pieces, tile.plain, tile.rung_step, tile.shares,
         (unsigned long long)statistics.registers, (unsigned long long)statistics.spilled_bytes,
         (unsigned long long)vulkan_units_shared(&tile, storage));
}

static void print_table(int32_t storage, uint32_t parts, char **names, int name_count) {
  int count;
  const Cut *cuts = cuts_of(storage, &count);
  print_header(storage, parts, names, name_count);
  for (int c = 0; c < count; c++) {
    if (!fits(storage, &cuts[c], parts)) continue;
    print_cut(storage, &cuts[c], parts);
    for (int p = 0; p < PRODUCT_COUNT; p++) {
      uint32_t splits = 1;
      if (PRODUCTS[p].storage != storage || !named(&PRODUCTS[p], names, name_count)) continue;
      const double us = time_splits(&PRODUCTS[p], &cuts[c], parts, &splits);
      printf(" %8.1f /%2u", us, splits);
    }
    printf("\n");
  }
  fflush(stdout);
}

/* What the bytes take at the device's own speed is not known here: bytes alone. */
static void print_bytes(void) {
  for (int p = 0; p < PRODUCT_COUNT; p++) {
    const double each = PRODUCTS[p].storage == DFLASH_STORAGE_Q4TP ? 0.53125 : 1;
    printf("%s %.2f MB%s", PRODUCTS[p].name, (double)(PRODUCTS[p].rows * PRODUCTS[p].cols) * each / 1e6,
           p + 1 < PRODUCT_COUNT ? ", " : "\n");
  }
}

static void make_pipelines(char **names, int name_count) {
  const time_t begin = time(NULL);
  int made = 0;
  for (int p = 0; p < PRODUCT_COUNT; p++) {
    int count;
    const Cut *cuts = cuts_of(PRODUCTS[p].storage, &count);
    for (uint32_t parts = 1; parts <= 3 && named(&PRODUCTS[p], names, name_count); parts += 2)
      for (int c = 0; c < count; c++)
        if (fits(PRODUCTS[p].storage, &cuts[c], parts))
          pipeline_of(PRODUCTS[p].storage, &cuts[c], parts, shares_of(&cuts[c], &PRODUCTS[p])), made++;
  }
  fprintf(stderr, "%u pipelines for %d uses, %ld s\n", pipelines.count, made, (long)(time(NULL) - begin));
}

static void open_buffers(void) {
  open_words(&weights, WEIGHT_BYTES, UINT32_MAX, 0);
  open_words(&codes, WEIGHT_BYTES / 16 + ALIGN, 0x1f1f1f1f, 0);
  open_words(&x, 4 << 20, 0xbbffbbff, 0);
  open_words(&factors, 1 << 20, 0, 0x3f800000);
  open_words(&scales, 1 << 20, 0, 0x3f800000);
  open_words(&y, 8 << 20, 0, 0);
  open_words(&found, 128 << 20, 0, 0);
  open_words(&arrivals, 1 << 20, 0, 0);
  open_masks();
}

int main(int argc, char **argv) {
  bool units = false;
  uint32_t splits;
  need(vulkan_device_open(&(VulkanDeviceOptions){.statistics = true}, &device, &error), "device");
  need(vulkan_units_probe(&device, &pipelines, &units, &error), "probe");
  if (!units) {
    fprintf(stderr, "time_units: %s has no matrix units that the kernels can use\n", device.traits.name);
    return 1;
  }
  open_buffers();
  make_pipelines(argv + 1, argc - 1);
  time_product(&PRODUCTS[PRODUCT_COUNT - 1], &Q8_CUTS[0], 1, steps_each(&PRODUCTS[PRODUCT_COUNT - 1], &Q8_CUTS[0], 0),
               WARM_RUNS, &splits);
  printf("%s\n", device.traits.name);
  print_bytes();
  for (uint32_t parts = 1; parts <= 3; parts += 2) print_table(DFLASH_STORAGE_Q4TP, parts, argv + 1, argc - 1);
  for (uint32_t parts = 1; parts <= 3; parts += 2) print_table(DFLASH_STORAGE_Q8_2F, parts, argv + 1, argc - 1);
  return 0;
}
