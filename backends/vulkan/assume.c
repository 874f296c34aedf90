#include "assume.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { MOST_KEY = 16, MOST_NUMBER = 24 };

static const struct Limit {
  const char *key;
  uint64_t least; /* with less there is nothing to run on */
} LIMITS[VULKAN_ASSUME_COUNT] = {
    [VULKAN_ASSUME_BINDING] = {"binding", 1}, [VULKAN_ASSUME_ALLOCATION] = {"allocation", 1},
    [VULKAN_ASSUME_SHARED] = {"shared", 1},   [VULKAN_ASSUME_THREADS] = {"threads", 1},
    [VULKAN_ASSUME_GROUPS] = {"groups", 1},   [VULKAN_ASSUME_STAMPS] = {"stamps", 0},
    [VULKAN_ASSUME_DOT] = {"dot", 0},         [VULKAN_ASSUME_ADDRESSES] = {"addresses", 0},
    [VULKAN_ASSUME_MAPPED] = {"mapped", 0},   [VULKAN_ASSUME_MEMORY] = {"memory", 1},
};

/* ---- the option's text ---- */

/* "64K" */
static bool parse_size(char *text, uint64_t *size) {
  static const char units[] = "KMG";
  const size_t length = strlen(text);
  const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
  int64_t number, scale = 1;
  if (unit) {
    scale = INT64_C(1) << 10 * (unit - units + 1);
    text[length - 1] = '\0';
  }
  if (!dflash_parse_i64(text, &number) || number < 0 || number > INT64_MAX / scale) return false;
  *size = (uint64_t)(number * scale);
  return true;
}

/* The first `bytes` of `from` as a string; false where they do not fit. */
static bool cut(const char *from, size_t bytes, char *to, size_t size) {
  if (bytes >= size) return false;
  memcpy(to, from, bytes);
  to[bytes] = '\0';
  return true;
}

/* One "binding:64K" of `bytes` characters. */
static bool parse_entry(const char *text, size_t bytes, VulkanAssumed *assumed) {
  char key[MOST_KEY], number[MOST_NUMBER];
  const char *colon = memchr(text, ':', bytes);
  if (!colon || !cut(text, (size_t)(colon - text), key, sizeof key) ||
      !cut(colon + 1, bytes - (size_t)(colon + 1 - text), number, sizeof number))
    return false;
  for (int i = 0; i < VULKAN_ASSUME_COUNT; i++) {
    if (strcmp(key, LIMITS[i].key) != 0) continue;
    if (assumed->given[i] || !parse_size(number, &assumed->values[i])) return false;
    return assumed->given[i] = assumed->values[i] >= LIMITS[i].least;
  }
  return false;
}

bool vulkan_assumed_parse(const char *text, VulkanAssumed *assumed) {
  *assumed = (VulkanAssumed){0};
  for (;;) {
    const size_t bytes = strcspn(text, ",");
    if (!parse_entry(text, bytes, assumed)) return false;
    if (text[bytes] == '\0') return true;
    text += bytes + 1;
  }
}

/* ---- the device ---- */

static uint64_t offered(const VulkanTraits *t, int which) {
  const uint64_t values[] = {[VULKAN_ASSUME_BINDING] = t->max_binding,  [VULKAN_ASSUME_ALLOCATION] = t->max_allocation,
                             [VULKAN_ASSUME_SHARED] = t->shared_bytes,  [VULKAN_ASSUME_THREADS] = t->max_threads,
                             [VULKAN_ASSUME_GROUPS] = t->max_groups[0], [VULKAN_ASSUME_STAMPS] = t->timestamp_bits,
                             [VULKAN_ASSUME_DOT] = t->integer_dot,      [VULKAN_ASSUME_ADDRESSES] = t->addresses,
                             [VULKAN_ASSUME_MAPPED] = t->mapped_local,  [VULKAN_ASSUME_MEMORY] = t->memory_bytes};
  return values[which];
}

/* value <= what is offered: it fits the trait. */
static void lower(VulkanTraits *t, int which, uint64_t value) {
  switch (which) {
  case VULKAN_ASSUME_BINDING:
    t->max_binding = value;
    break;
  case VULKAN_ASSUME_ALLOCATION:
    t->max_allocation = value;
    break;
  case VULKAN_ASSUME_SHARED:
    t->shared_bytes = value;
    break;
  case VULKAN_ASSUME_THREADS:
    t->max_threads = (uint32_t)value;
    break;
  case VULKAN_ASSUME_GROUPS:
    t->max_groups[0] = (uint32_t)value;
    break;
  case VULKAN_ASSUME_STAMPS:
    t->timestamp_bits = (uint32_t)value;
    break;
  case VULKAN_ASSUME_DOT:
    t->integer_dot = value != 0;
    break;
  case VULKAN_ASSUME_ADDRESSES:
    t->addresses = value != 0;
    break;
  case VULKAN_ASSUME_MAPPED:
    t->mapped_local = value != 0;
    break;
  default:
    t->memory_bytes = value;
  }
}

DflashStatus vulkan_assume(const VulkanAssumed *assumed, VulkanTraits *traits, DflashError *error) {
  static const char mark[] = " as assumed";
  bool any = false;
  for (int i = 0; i < VULKAN_ASSUME_COUNT; i++) {
    if (!assumed->given[i]) continue;
    const uint64_t own = offered(traits, i);
    if (assumed->values[i] > own)
      return dflash_error_set(
          error, DFLASH_INVALID_ARGUMENT, "vulkan: option assume: %s is %llu, and %s has %llu: it can only be lowered",
          LIMITS[i].key, (unsigned long long)assumed->values[i], traits->name, (unsigned long long)own);
    lower(traits, i, assumed->values[i]);
    any = true;
  }
  const size_t room = sizeof traits->name - sizeof mark, length = strlen(traits->name);
  if (any) memcpy(traits->name + (length < room ? length : room), mark, sizeof mark);
  return DFLASH_OK;
}

void vulkan_assume_heaps(const VulkanAssumed *assumed, VkPhysicalDeviceMemoryProperties *memory) {
  const uint64_t most = assumed->values[VULKAN_ASSUME_MEMORY];
  if (!assumed->given[VULKAN_ASSUME_MEMORY]) return;
  for (uint32_t i = 0; i < memory->memoryHeapCount; i++)
    if (memory->memoryHeaps[i].size > most) memory->memoryHeaps[i].size = most;
}

void vulkan_assumed_text(const VulkanAssumed *assumed, char *text, size_t size) {
  DflashText list = {0};
  for (int i = 0; i < VULKAN_ASSUME_COUNT; i++)
    if (assumed->given[i])
      dflash_text_append(&list, "%s %s %llu", list.size > 0 ? "," : "assumed", LIMITS[i].key,
                         (unsigned long long)assumed->values[i]);
  snprintf(text, size, "%s%s", list.data ? list.data : "", list.size > 0 ? "; " : "");
  dflash_text_free(&list);
}
