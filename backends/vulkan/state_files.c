/* States that Linux shows in files. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "state.h"

enum { PATH_BYTES = 512 };

/* Where a number is; of several places for the same, the first that is there. */
typedef struct Place {
  int bit;
  const char *pattern; /* of file names */
  double scale;        /* to hertz, degrees Celsius, watts */
} Place;

static bool read_file(const char *path, double *value) {
  char line[64], *end;
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const bool read = fgets(line, sizeof line, file) != NULL;
  fclose(file);
  if (!read) return false;
  *value = strtod(line, &end);
  return end != line;
}

static bool read_pattern(const char *folder, const char *pattern, double *value) {
  char path[PATH_BYTES];
  glob_t files = {0};
  bool read = false;
  snprintf(path, sizeof path, "%s/%s", folder, pattern);
  if (glob(path, 0, NULL, &files) == 0)
    for (size_t i = 0; i < files.gl_pathc && !read; i++) read = read_file(files.gl_pathv[i], value);
  globfree(&files);
  return read;
}

static void read_places(const char *folder, const Place *places, size_t count, DflashDeviceState *found) {
  double *members[] = {[VULKAN_STATE_CLOCK] = &found->clock_hz,
                       [VULKAN_STATE_MEMORY] = &found->memory_hz,
                       [VULKAN_STATE_CELSIUS] = &found->celsius,
                       [VULKAN_STATE_WATTS] = &found->watts};
  for (size_t i = 0; i < count; i++) {
    double value;
    if (found->valid & 1u << places[i].bit || !read_pattern(folder, places[i].pattern, &value)) continue;
    *members[places[i].bit] = value * places[i].scale;
    found->valid |= 1u << places[i].bit;
  }
}

/* amdgpu and nouveau have all in hwmon; i915 and xe have their clock elsewhere, xe the chip's temperature second. */
void vulkan_state_pci(const char *root, const char *pci, DflashDeviceState *found) {
  static const Place places[] = {
      {VULKAN_STATE_CLOCK, "hwmon/hwmon*/freq1_input", 1},
      {VULKAN_STATE_CLOCK, "drm/card*/gt_act_freq_mhz", 1e6},
      {VULKAN_STATE_CLOCK, "tile0/gt0/freq0/act_freq", 1e6},
      {VULKAN_STATE_MEMORY, "hwmon/hwmon*/freq2_input", 1},
      {VULKAN_STATE_CELSIUS, "hwmon/hwmon*/temp1_input", 1e-3},
      {VULKAN_STATE_CELSIUS, "hwmon/hwmon*/temp2_input", 1e-3},
      {VULKAN_STATE_WATTS, "hwmon/hwmon*/power1_average", 1e-6},
      {VULKAN_STATE_WATTS, "hwmon/hwmon*/power1_input", 1e-6},
  };
  char folder[PATH_BYTES];
  snprintf(folder, sizeof folder, "%s/sys/bus/pci/devices/%s", root, pci);
  read_places(folder, places, sizeof places / sizeof places[0], found);
}

/* Of the first processor. */
static bool read_cpuinfo(const char *root, double *hertz) {
  char line[512];
  double mhz = 0;
  snprintf(line, sizeof line, "%s/proc/cpuinfo", root);
  FILE *file = fopen(line, "re");
  if (!file) return false;
  while (mhz == 0 && fgets(line, sizeof line, file)) sscanf(line, "cpu MHz : %lf", &mhz);
  fclose(file);
  *hertz = mhz * 1e6;
  return mhz > 0;
}

/* Threads that run now beside this one. */
static bool read_others(const char *root, int32_t *others) {
  char path[PATH_BYTES];
  int running;
  snprintf(path, sizeof path, "%s/proc/loadavg", root);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const bool read = fscanf(file, "%*f %*f %*f %d/", &running) == 1;
  fclose(file);
  if (!read) return false;
  *others = running > 1 ? running - 1 : 0;
  return true;
}

void vulkan_state_host(const char *root, DflashDeviceState *found) {
  static const Place places[] = {
      {VULKAN_STATE_CLOCK, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", 1e3},
      {VULKAN_STATE_CELSIUS, "sys/bus/pci/drivers/k10temp/*/hwmon/hwmon*/temp1_input", 1e-3},
      {VULKAN_STATE_CELSIUS, "sys/devices/platform/coretemp.*/hwmon/hwmon*/temp1_input", 1e-3},
  };
  read_places(root, places, sizeof places / sizeof places[0], found);
  const bool has_clock = found->valid & 1u << VULKAN_STATE_CLOCK;
  if (!has_clock && read_cpuinfo(root, &found->clock_hz)) found->valid |= 1u << VULKAN_STATE_CLOCK;
  if (read_others(root, &found->other_users)) found->valid |= 1u << VULKAN_STATE_USERS;
}
