#include "fragments.h"

#include <string.h>

#include "attend.h"
#include "product.h"
#include "rows.h"
#include "units.h"

enum { GROUP_COLS = 32, MOST_READERS = 3, ROW_SHARED = 512 * 4 + 32 * 4, THREAD_SHARED = 4 };

/* A row of out is one workgroup's, which reads a tap's sums again for each row that has the tap: with more splits that
 * takes longer than their addition by many workgroups. */
enum { OUT_SPLITS = 4, MOST_SPLITS = 32 };

/* As kernel.h lists them: forms that the kernel can prepare, products that it reads, where the plain one binds the
 * first of them, and the most splits that it adds. */
static const struct Kernel {
  int plain, fragments, forms, products, binding;
  uint32_t most_splits;
} KERNELS[] = {{VULKAN_KERNEL_ENTER, VULKAN_KERNEL_ENTER_FRAGMENTS, 1, 0, 0, 1},
               {VULKAN_KERNEL_OUT, VULKAN_KERNEL_OUT_FRAGMENTS, 2, 1, 1, OUT_SPLITS},
               {VULKAN_KERNEL_CONV, VULKAN_KERNEL_CONV_FRAGMENTS, 1, 1, 1, MOST_SPLITS},
               {VULKAN_KERNEL_ACT, VULKAN_KERNEL_ACT_FRAGMENTS, 1, 2, 0, MOST_SPLITS},
               {VULKAN_KERNEL_MIX, VULKAN_KERNEL_MIX_FRAGMENTS, 1, 0, 0, 1}};

static const struct Kernel *kernel_of(int plain) {
  size_t i = 0;
  while (KERNELS[i].plain != plain) i++;
  return &KERNELS[i];
}

/* -1: none of those stages. */
static int plain_kernel(int32_t stage, int64_t layer) {
  switch (stage) {
  case DFLASH_STAGE_ATTN_NORM:
    return layer == 0 ? VULKAN_KERNEL_ENTER : VULKAN_KERNEL_OUT;
  case DFLASH_STAGE_MLP_NORM:
  case DFLASH_STAGE_FINAL_NORM:
    return VULKAN_KERNEL_OUT;
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_MLP_CONV_IN:
    return VULKAN_KERNEL_CONV;
  case DFLASH_STAGE_ATTN_MIX:
    return VULKAN_KERNEL_MIX;
  case DFLASH_STAGE_MLP_ACT:
    return VULKAN_KERNEL_ACT;
  default:
    return -1;
  }
}

/* The matrices that multiply a stage's values, in the order of their products; NULL: no more. */
static void find_readers(const DflashModel *model, int32_t stage, int64_t layer,
                         const VulkanMatrix *readers[MOST_READERS]) {
  const VulkanLayer *l = &model->layers[layer];
  const struct {
    int32_t stage;
    const VulkanMatrix *readers[MOST_READERS];
  } all[] = {{DFLASH_STAGE_ATTN_NORM, {&l->attn_kernel}},
             {DFLASH_STAGE_ATTN_CONV_IN, {&l->q, &l->k, &l->v}},
             {DFLASH_STAGE_ATTN_MIX, {&l->o}},
             {DFLASH_STAGE_MLP_NORM, {&l->mlp_kernel}},
             {DFLASH_STAGE_MLP_CONV_IN, {&l->gate, &l->up}},
             {DFLASH_STAGE_MLP_ACT, {&l->down}},
             {DFLASH_STAGE_FINAL_NORM, {&model->head, &model->selector}}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].stage == stage) memcpy(readers, all[i].readers, sizeof all[i].readers);
}

/* Two forms of one kernel are parts of one number, or integers. */
static bool forms_go_together(const DflashModel *model, const VulkanMatrix *a, const VulkanMatrix *b) {
  const VulkanMade one = vulkan_product_makes(model, a), other = vulkan_product_makes(model, b);
  return !vulkan_made_serves(&one, &other) && one.what == other.what;
}

static void choose_forms(const DflashModel *model, const VulkanMatrix *const readers[MOST_READERS], int most,
                         VulkanMaker *maker) {
  int count = 0;
  for (int i = 0; i < MOST_READERS && count < most; i++) {
    const VulkanMatrix *reader = readers[i];
    if (!reader || reader->pieces == 0) continue;
    if (count == 0 || forms_go_together(model, maker->forms[0], reader)) maker->forms[count++] = reader;
  }
}

/* A row that its workgroup keeps, and the largest of each thread's pieces. */
static bool keeps_row(const VulkanTraits *traits, const VulkanMaker *maker) {
  const uint32_t threads = maker->constants[0], turns = maker->constants[2];
  return vulkan_row_is_kept(turns) && ROW_SHARED + (uint64_t)threads * turns * THREAD_SHARED <= traits->shared_bytes;
}

static bool fits(const DflashModel *model, const VulkanMaker *maker, int kernel) {
  const DflashGeometry *g = &model->geometry;
  const VulkanTraits *traits = &model->device.traits;
  if (vulkan_kernel_info(kernel)->bindings > traits->max_storage_buffers) return false;
  switch (maker->plain) {
  case VULKAN_KERNEL_CONV:
    return g->hidden % 2 == 0;
  case VULKAN_KERNEL_ACT:
    return g->intermediate % 2 == 0;
  case VULKAN_KERNEL_MIX:
    return g->head_dim % GROUP_COLS == 0 && vulkan_mix_groups(g, maker) <= traits->max_groups[0];
  default:
    return g->hidden % 2 == 0 && keeps_row(traits, maker);
  }
}

/* The products that the kernel of a stage reads. */
static void find_products(const DflashModel *model, int32_t stage, int64_t layer,
                          const VulkanMatrix *products[VULKAN_SUMS]) {
  const VulkanLayer *l = &model->layers[layer];
  const VulkanMatrix *first = NULL, *second = NULL;
  if (stage == DFLASH_STAGE_ATTN_CONV_IN) first = &l->attn_kernel;
  if (stage == DFLASH_STAGE_MLP_CONV_IN) first = &l->mlp_kernel;
  if (stage == DFLASH_STAGE_MLP_NORM) first = &l->o;
  if (stage == DFLASH_STAGE_ATTN_NORM && layer > 0) first = &l[-1].down;
  if (stage == DFLASH_STAGE_FINAL_NORM) first = &model->layers[model->geometry.layers - 1].down;
  if (stage == DFLASH_STAGE_MLP_ACT) {
    first = &l->gate;
    second = &l->up;
  }
  products[0] = first;
  products[1] = second;
}

static uint32_t splits_of(const DflashModel *model, const VulkanMatrix *matrix, uint32_t most) {
  const bool on_units = matrix && matrix->pieces > 0;
  const uint32_t splits = on_units ? vulkan_units_splits(model, matrix, model->geometry.block) : 1;
  return splits <= most ? splits : 1;
}

static bool has_field(const VulkanMatrix *matrix) { return matrix && matrix->storage == DFLASH_STORAGE_Q8_2F; }

static void add_constants(const DflashModel *model, VulkanMaker *maker) {
  const VulkanMatrix *first = maker->forms[0], *other = maker->forms[1];
  const struct Kernel *kernel = kernel_of(maker->plain);
  uint32_t *more = maker->constants + maker->count;
  more[0] = vulkan_units_parts(model, first->storage);
  more[1] = vulkan_units_integers(model, first->storage);
  more[2] = has_field(first);
  more[3] = other ? 2 : 1;
  more[4] = has_field(other);
  maker->count += kernel->forms == 1 ? 3 : 5;
  for (int i = 0; i < kernel->products; i++) maker->constants[maker->count++] = maker->splits[i];
}

static void choose_splits(const DflashModel *model, int32_t stage, int64_t layer, const struct Kernel *kernel,
                          VulkanMaker *maker) {
  const VulkanMatrix *products[VULKAN_SUMS] = {NULL};
  find_products(model, stage, layer, products);
  for (int i = 0; i < kernel->products; i++) maker->splits[i] = splits_of(model, products[i], kernel->most_splits);
}

VulkanMaker vulkan_maker(const DflashModel *model, int32_t stage, int64_t layer) {
  const VulkanTraits *traits = &model->device.traits;
  const VulkanMatrix *readers[MOST_READERS] = {NULL};
  VulkanMaker maker = {.plain = plain_kernel(stage, layer)};
  const struct Kernel *kernel = kernel_of(maker.plain);
  find_readers(model, stage, layer, readers);
  maker.kernel = maker.plain;
  maker.count = vulkan_row_constants(traits, &model->geometry, maker.plain, maker.constants);
  if (maker.plain == VULKAN_KERNEL_MIX) maker.constants[maker.count++] = vulkan_mix_threads(traits);
  if (model->options.join) choose_forms(model, readers, kernel->forms, &maker);
  if (!maker.forms[0]) return maker;
  if (fits(model, &maker, kernel->fragments)) {
    maker.kernel = kernel->fragments;
    choose_splits(model, stage, layer, kernel, &maker);
    add_constants(model, &maker);
  } else {
    memset(maker.forms, 0, sizeof maker.forms);
  }
  return maker;
}

int32_t vulkan_stage_after(const DflashGeometry *g, int64_t *layer) {
  *layer = *layer + 1 == g->layers ? 0 : *layer + 1;
  return *layer == 0 ? DFLASH_STAGE_FINAL_NORM : DFLASH_STAGE_ATTN_NORM;
}

bool vulkan_stage_is_prepared(const DflashModel *model, int32_t stage, int64_t layer) {
  return plain_kernel(stage, layer) >= 0 && vulkan_maker(model, stage, layer).forms[0];
}

/* ---- splits ---- */

VulkanMaker vulkan_heads_maker(const DflashModel *model, int64_t layer) {
  const VulkanTraits *traits = &model->device.traits;
  const VulkanMatrix *products[VULKAN_SUMS] = {&model->layers[layer].q, &model->layers[layer].k,
                                               &model->layers[layer].v};
  VulkanMaker maker = {.plain = VULKAN_KERNEL_HEADS, .kernel = VULKAN_KERNEL_HEADS};
  bool split = false;
  maker.count = vulkan_row_constants(traits, &model->geometry, VULKAN_KERNEL_HEADS, maker.constants);
  if (!model->options.join || vulkan_kernel_info(VULKAN_KERNEL_HEADS_SUMS)->bindings > traits->max_storage_buffers)
    return maker;
  for (int i = 0; i < VULKAN_SUMS; i++) {
    maker.splits[i] = splits_of(model, products[i], MOST_SPLITS);
    split = split || maker.splits[i] > 1;
  }
  if (!split) return maker;
  maker.kernel = VULKAN_KERNEL_HEADS_SUMS;
  for (int i = 0; i < VULKAN_SUMS; i++) maker.constants[maker.count++] = maker.splits[i];
  return maker;
}

/* The kernel that reads a product, and which of its products this is. */
static VulkanMaker reader_of(const DflashModel *model, int32_t stage, int64_t layer, int *which) {
  *which = 0;
  switch (stage) {
  case DFLASH_STAGE_ATTN_KERNEL:
    return vulkan_maker(model, DFLASH_STAGE_ATTN_CONV_IN, layer);
  case DFLASH_STAGE_MLP_KERNEL:
    return vulkan_maker(model, DFLASH_STAGE_MLP_CONV_IN, layer);
  case DFLASH_STAGE_MLP_GATE:
  case DFLASH_STAGE_MLP_UP:
    *which = stage == DFLASH_STAGE_MLP_UP;
    return vulkan_maker(model, DFLASH_STAGE_MLP_ACT, layer);
  case DFLASH_STAGE_ATTN_O_PROJ:
    return vulkan_maker(model, DFLASH_STAGE_MLP_NORM, layer);
  case DFLASH_STAGE_MLP_DOWN:
    stage = vulkan_stage_after(&model->geometry, &layer);
    return vulkan_maker(model, stage, layer);
  case DFLASH_STAGE_ATTN_Q_PROJ:
  case DFLASH_STAGE_ATTN_K_PROJ:
  case DFLASH_STAGE_ATTN_V_PROJ:
    *which = stage - DFLASH_STAGE_ATTN_Q_PROJ;
    return vulkan_heads_maker(model, layer);
  default:
    return (VulkanMaker){0};
  }
}

uint32_t vulkan_splits_apart(const DflashModel *model, int32_t stage, int64_t layer) {
  int which;
  const VulkanMaker reader = reader_of(model, stage, layer, &which);
  return reader.splits[which] > 1 ? reader.splits[which] : 1;
}

/* ---- what is bound ---- */

void vulkan_maker_ranges(const DflashModel *model, const VulkanMaker *maker, const VulkanScratch *scratch,
                         VulkanRange *ranges) {
  const struct Kernel *kernel = kernel_of(maker->plain);
  const VulkanMatrix *other = maker->forms[1] ? maker->forms[1] : maker->forms[0];
  const VulkanRange more[] = {maker->forms[0]->columns, model->pairs,        scratch->fragments[0], scratch->factors[0],
                              scratch->fragments[1],    scratch->factors[1], other->columns};
  const uint32_t count = kernel->forms == 1 ? 4 : 7;
  VulkanRange *to = ranges + vulkan_kernel_info(maker->plain)->bindings;
  memcpy(to, more, count * sizeof *more);
  for (int i = 0; i < kernel->products; i++)
    to[count + (uint32_t)i] = maker->splits[i] > 1 ? scratch->found[i] : ranges[kernel->binding + i];
}

void vulkan_heads_ranges(const VulkanMaker *maker, const VulkanScratch *scratch, VulkanRange *ranges) {
  const VulkanRange plain[VULKAN_SUMS] = {scratch->q_proj, scratch->k_proj, scratch->v_proj};
  VulkanRange *to = ranges + vulkan_kernel_info(maker->plain)->bindings;
  for (int i = 0; i < VULKAN_SUMS; i++) to[i] = maker->splits[i] > 1 ? scratch->found[i] : plain[i];
  to[VULKAN_SUMS] = scratch->v_proj;
}

uint32_t vulkan_mix_groups(const DflashGeometry *g, const VulkanMaker *maker) {
  const int64_t cols = vulkan_units_groups(DFLASH_STORAGE_Q4TP, g->heads * g->head_dim) * GROUP_COLS;
  return (uint32_t)(maker->forms[0] ? (cols + g->head_dim - 1) / g->head_dim : g->heads);
}
