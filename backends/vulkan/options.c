/* What --option sets for this backend. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "model.h"

const char vulkan_options_text[] =
    "validation=on|off (off), dot=auto|on|off (auto), matrix=auto|tile|cooperative "
    "(auto: cooperative where the "
    "device can, else tile), join=auto|off (auto), attention=auto|plain (auto), keep=window|all (window), "
    "splits=N of the context (0: by the device), statistics=on|off (off), "
    "assume=KEY:N[K|M|G],... of a device that offers less (nothing), "
    "skip-barrier=N (0: none), fail=N[:memory|lost|timeout] (0: none)";

enum { MOST_SPLITS = VULKAN_MAX_PARTS - 1 };

static bool parse_switch(const char *value, bool *on) {
  *on = strcmp(value, "on") == 0;
  return *on || strcmp(value, "off") == 0;
}

static bool parse_count(const char *value, int64_t most, int64_t *count) {
  return dflash_parse_i64(value, count) && *count >= 0 && *count <= most;
}

static bool parse_validation(const char *value, VulkanOptions *options) {
  return parse_switch(value, &options->validation);
}

static bool parse_dot(const char *value, VulkanOptions *options) {
  options->dot_required = strcmp(value, "on") == 0;
  options->dot = true;
  return strcmp(value, "auto") == 0 || parse_switch(value, &options->dot);
}

static bool parse_matrix(const char *value, VulkanOptions *options) {
  options->units_required = strcmp(value, "cooperative") == 0;
  options->units = strcmp(value, "tile") != 0;
  return options->units_required || !options->units || strcmp(value, "auto") == 0;
}

static bool parse_join(const char *value, VulkanOptions *options) {
  options->join = strcmp(value, "auto") == 0;
  return options->join || strcmp(value, "off") == 0;
}

static bool parse_attention(const char *value, VulkanOptions *options) {
  options->attention = strcmp(value, "auto") == 0;
  return options->attention || strcmp(value, "plain") == 0;
}

static bool parse_keep(const char *value, VulkanOptions *options) {
  options->keep_all = strcmp(value, "all") == 0;
  return options->keep_all || strcmp(value, "window") == 0;
}

static bool parse_splits(const char *value, VulkanOptions *options) {
  int64_t count;
  if (!parse_count(value, MOST_SPLITS, &count)) return false;
  options->splits = (uint32_t)count;
  return true;
}

static bool parse_statistics(const char *value, VulkanOptions *options) {
  return parse_switch(value, &options->statistics);
}

static bool parse_assume(const char *value, VulkanOptions *options) {
  return vulkan_assumed_parse(value, &options->assumed);
}

static bool parse_barrier(const char *value, VulkanOptions *options) {
  int64_t count;
  if (!parse_count(value, UINT32_MAX, &count)) return false;
  options->skip_barrier = (uint32_t)count;
  return true;
}

static bool parse_result(const char *name, VkResult *result) {
  static const struct {
    const char *name;
    VkResult result;
  } results[] = {{"memory", VK_ERROR_OUT_OF_DEVICE_MEMORY}, {"lost", VK_ERROR_DEVICE_LOST}, {"timeout", VK_TIMEOUT}};
  for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
    if (strcmp(name, results[i].name) == 0) {
      *result = results[i].result;
      return true;
    }
  return false;
}

static bool parse_fail(const char *value, VulkanOptions *options) {
  char number[32];
  int64_t at;
  const size_t digits = strcspn(value, ":");
  if (digits >= sizeof number) return false;
  memcpy(number, value, digits);
  number[digits] = '\0';
  options->fault.result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (!parse_count(number, INT64_MAX, &at)) return false;
  options->fault.at = (uint64_t)at;
  return value[digits] == '\0' || parse_result(value + digits + 1, &options->fault.result);
}

static const struct {
  const char *key, *values;
  bool (*parse)(const char *value, VulkanOptions *options);
} keys[] = {
    {"validation", "on or off", parse_validation},
    {"dot", "auto, on or off", parse_dot},
    {"matrix", "auto, tile or cooperative", parse_matrix},
    {"join", "auto or off", parse_join},
    {"attention", "auto or plain", parse_attention},
    {"keep", "window or all", parse_keep},
    {"splits", "0 to 63", parse_splits},
    {"statistics", "on or off", parse_statistics},
    {"assume",
     "KEY:N[K|M|G],... of binding, allocation, shared, threads, groups, stamps, dot, addresses, mapped, memory",
     parse_assume},
    {"skip-barrier", "0 or the number of a barrier", parse_barrier},
    {"fail", "the number of a call, alone or with :memory, :lost or :timeout", parse_fail},
};

_Static_assert(MOST_SPLITS == 63, "the text of splits above");

static DflashStatus read_option(const DflashOption *option, VulkanOptions *options, DflashError *error) {
  const char *key = option->key ? option->key : "", *value = option->value ? option->value : "";
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    if (strcmp(key, keys[i].key) != 0) continue;
    if (keys[i].parse(value, options)) return DFLASH_OK;
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: option %s is '%s', expected %s", key, value,
                            keys[i].values);
  }
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: unknown option '%s'; known are %s", key,
                          vulkan_options_text);
}

DflashStatus vulkan_options_read(const DflashModelDesc *desc, VulkanOptions *options, DflashError *error) {
  *options = (VulkanOptions){.dot = true, .units = true, .join = true, .attention = true};
  for (uint32_t i = 0; i < desc->option_count; i++) {
    DflashStatus status = read_option(&desc->options[i], options, error);
    if (status) return status;
  }
  return DFLASH_OK;
}
