/* What is read of a device's state, from files and a library that the test makes. No device is needed. */
#include "fixture.h"

#include <dlfcn.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/nvml.h"
#include "model.h"

#define ROOT DFLASH_SCRATCH_FOLDER "/state"
#define PCI "0000:41:00.0"
#define DEVICE "/sys/bus/pci/devices/" PCI
#define BIT(name) (1u << VULKAN_STATE_##name)

enum { NVIDIA = 0x10de, OTHER = 0x1002, UNKNOWN = 999 };

static const VulkanTraits nvidia = {.vendor = NVIDIA, .pci = PCI}, other = {.vendor = OTHER, .pci = PCI},
                          processor = {.is_cpu = true};

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info;
  (void)kind;
  (void)walk;
  return remove(path);
}

static int remove_files(void **state) {
  (void)state;
  nftw(ROOT, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  return 0;
}

/* A file under the root, with the folders that lead to it. */
static void write_file(const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, ROOT "%s", name);
  for (char *slash = path + sizeof ROOT - 1; slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0777);
    *slash = '/';
  }
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static DflashDeviceState read_files(const VulkanTraits *traits) {
  VulkanState state = {0};
  DflashDeviceState found;
  vulkan_state_read(&state, traits, &(VulkanStateSource){ROOT, "/nonexistent"}, &found);
  vulkan_state_close(&state);
  return found;
}

static void assert_near(double got, double expected) {
  assert_true(got > expected * 0.999999 && got < expected * 1.000001);
}

static void test_amdgpu(void **state) {
  (void)state;
  write_file(DEVICE "/hwmon/hwmon7/freq1_input", "2145000000\n");
  write_file(DEVICE "/hwmon/hwmon7/freq2_input", "1249000000\n");
  write_file(DEVICE "/hwmon/hwmon7/temp1_input", "52000\n");
  write_file(DEVICE "/hwmon/hwmon7/power1_average", "87500000\n");
  write_file(DEVICE "/hwmon/hwmon7/power1_input", "1\n");
  const DflashDeviceState found = read_files(&other);
  assert_int_equal(found.valid, BIT(CLOCK) | BIT(MEMORY) | BIT(CELSIUS) | BIT(WATTS));
  assert_near(found.clock_hz, 2.145e9);
  assert_near(found.memory_hz, 1.249e9);
  assert_near(found.celsius, 52);
  assert_near(found.watts, 87.5);
}

static void test_i915(void **state) {
  (void)state;
  write_file(DEVICE "/drm/card1/gt_act_freq_mhz", "1350\n");
  write_file(DEVICE "/drm/renderD128/dev", "226:128\n");
  const DflashDeviceState found = read_files(&other);
  assert_int_equal(found.valid, BIT(CLOCK));
  assert_near(found.clock_hz, 1.35e9);
}

static void test_xe(void **state) {
  (void)state;
  write_file(DEVICE "/tile0/gt0/freq0/act_freq", "2400\n");
  write_file(DEVICE "/hwmon/hwmon2/temp2_input", "61000\n");
  write_file(DEVICE "/hwmon/hwmon2/power1_input", "33000000\n");
  const DflashDeviceState found = read_files(&other);
  assert_int_equal(found.valid, BIT(CLOCK) | BIT(CELSIUS) | BIT(WATTS));
  assert_near(found.clock_hz, 2.4e9);
  assert_near(found.celsius, 61);
  assert_near(found.watts, 33);
}

/* What is no number counts as not there, and another place is looked at. */
static void test_unreadable(void **state) {
  (void)state;
  write_file(DEVICE "/hwmon/hwmon0/freq1_input", "");
  write_file(DEVICE "/hwmon/hwmon1/freq1_input", "900000000\n");
  write_file(DEVICE "/hwmon/hwmon0/temp1_input", "N/A\n");
  write_file(DEVICE "/hwmon/hwmon0/power1_average/file", "1\n");
  const DflashDeviceState found = read_files(&other);
  assert_int_equal(found.valid, BIT(CLOCK));
  assert_near(found.clock_hz, 9e8);
}

static void test_nothing(void **state) {
  (void)state;
  const VulkanTraits elsewhere = {.vendor = OTHER, .pci = "0000:42:00.0"}, nowhere = {.vendor = NVIDIA};
  write_file(DEVICE "/hwmon/hwmon0/temp1_input", "52000\n");
  assert_int_equal(read_files(&elsewhere).valid, 0);
  assert_int_equal(read_files(&nowhere).valid, 0);
  assert_int_equal(read_files(&processor).valid, 0);
  assert_int_equal(read_files(&other).valid, BIT(CELSIUS));
  assert_int_equal(read_files(&nvidia).valid, BIT(CELSIUS));
}

static void test_processor(void **state) {
  (void)state;
  write_file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: A processor\ncpu MHz\t\t: 2445.404\n\ncpu MHz\t\t: 1.0\n");
  write_file("/proc/loadavg", "0.52 0.58 0.59 3/1288 12345\n");
  DflashDeviceState found = read_files(&processor);
  assert_int_equal(found.valid, BIT(CLOCK) | BIT(USERS));
  assert_near(found.clock_hz, 2.445404e9);
  assert_int_equal(found.other_users, 2);
  write_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400000\n");
  write_file("/sys/bus/pci/drivers/k10temp/0000:00:18.3/hwmon/hwmon1/temp1_input", "47250\n");
  write_file("/proc/loadavg", "0.52 0.58 0.59 0/1288 12345\n");
  found = read_files(&processor);
  assert_int_equal(found.valid, BIT(CLOCK) | BIT(CELSIUS) | BIT(USERS));
  assert_near(found.clock_hz, 3.4e9);
  assert_near(found.celsius, 47.25);
  assert_int_equal(found.other_users, 0);
}

static void test_other_processor(void **state) {
  (void)state;
  write_file("/sys/devices/platform/coretemp.0/hwmon/hwmon3/temp1_input", "66000\n");
  write_file("/proc/cpuinfo", "processor\t: 0\n");
  write_file("/proc/loadavg", "none\n");
  const DflashDeviceState found = read_files(&processor);
  assert_int_equal(found.valid, BIT(CELSIUS));
  assert_near(found.celsius, 66);
}

/* The library is closed with what it was opened for: run before a test holds it open itself. */
static void test_library_is_let_go(void **state) {
  (void)state;
  VulkanNvml nvml;
  assert_false(vulkan_nvml_open(&nvml, FAKE_NVML, PCI));
  assert_null(nvml.library);
  assert_null(dlopen(FAKE_NVML, RTLD_NOW | RTLD_NOLOAD));
}

/* The library's variable, as if nothing had been called: it knows the device, and two other processes beside this one.
 */
static FakeNvml *fake(const char *library) {
  FakeNvml *fake = dlsym(dlopen(library, RTLD_NOW), FAKE_NVML_SYMBOL);
  assert_non_null(fake);
  *fake = (FakeNvml){.pci = PCI, .compute_count = 2, .graphics_count = 2};
  fake->compute_ids[0] = UNKNOWN;
  fake->compute_ids[1] = (unsigned)getpid();
  fake->graphics_ids[0] = (unsigned)getpid();
  fake->graphics_ids[1] = UNKNOWN + 1;
  return fake;
}

static DflashDeviceState read_library(const char *library) {
  VulkanState state = {0};
  DflashDeviceState found;
  vulkan_state_read(&state, &nvidia, &(VulkanStateSource){ROOT, library}, &found);
  vulkan_state_close(&state);
  return found;
}

static void test_nvml(void **state) {
  (void)state;
  const FakeNvml *nvml = fake(FAKE_NVML);
  const DflashDeviceState found = read_library(FAKE_NVML);
  assert_int_equal(found.valid, 0x3f);
  assert_near(found.clock_hz, 1.98e9);
  assert_near(found.memory_hz, 3.201e9);
  assert_near(found.celsius, 41);
  assert_near(found.watts, 123.456);
  assert_true(found.throttle == 0x100000004);
  assert_int_equal(found.other_users, 2);
  assert_int_equal(nvml->starts, 1);
  assert_int_equal(nvml->ends, 1);
}

static void test_old_nvml(void **state) {
  (void)state;
  fake(FAKE_NVML_OLD);
  const DflashDeviceState found = read_library(FAKE_NVML_OLD);
  assert_int_equal(found.valid, 0x3f & ~BIT(THROTTLE));
  assert_int_equal(found.other_users, 2);
}

/* Each call that fails leaves out what it tells, and no more. */
static void test_calls_that_fail(void **state) {
  (void)state;
  static const struct {
    size_t offset;
    unsigned lost;
  } calls[] = {{offsetof(FakeNvml, clock), BIT(CLOCK) | BIT(MEMORY)},
               {offsetof(FakeNvml, temperature), BIT(CELSIUS)},
               {offsetof(FakeNvml, power), BIT(WATTS)},
               {offsetof(FakeNvml, throttle), BIT(THROTTLE)},
               {offsetof(FakeNvml, compute), BIT(USERS)},
               {offsetof(FakeNvml, graphics), BIT(USERS)}};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    FakeNvml *nvml = fake(FAKE_NVML);
    *(int *)((char *)nvml + calls[i].offset) = UNKNOWN;
    assert_int_equal(read_library(FAKE_NVML).valid, 0x3f & ~calls[i].lost);
  }
}

static void test_users(void **state) {
  (void)state;
  enum { NOT_SUPPORTED = 3 };
  FakeNvml *nvml = fake(FAKE_NVML);
  nvml->graphics = NOT_SUPPORTED;
  DflashDeviceState found = read_library(FAKE_NVML);
  assert_true(found.valid & BIT(USERS));
  assert_int_equal(found.other_users, 1);
  nvml = fake(FAKE_NVML);
  nvml->compute_ids[1] = nvml->graphics_ids[0] = UNKNOWN; /* this process is not among them */
  assert_false(read_library(FAKE_NVML).valid & BIT(USERS));
  nvml = fake(FAKE_NVML);
  nvml->compute_count = FAKE_PROCESSES;
  assert_false(read_library(FAKE_NVML).valid & BIT(USERS));
  nvml->compute_count = 256;
  for (unsigned i = 0; i < 256; i++) nvml->compute_ids[i] = UNKNOWN + 2 + i;
  found = read_library(FAKE_NVML);
  assert_true(found.valid & BIT(USERS));
  assert_int_equal(found.other_users, 257);
}

/* Where the library does not help, files are read; it is tried once a model. */
static void test_nvml_that_does_not_start(void **state) {
  (void)state;
  write_file(DEVICE "/hwmon/hwmon0/temp1_input", "52000\n");
  assert_int_equal(read_library(FAKE_NVML_BARE).valid, BIT(CELSIUS));
  FakeNvml *nvml = fake(FAKE_NVML);
  nvml->init = UNKNOWN;
  assert_int_equal(read_library(FAKE_NVML).valid, BIT(CELSIUS));
  assert_int_equal(nvml->ends, 0);
  nvml = fake(FAKE_NVML);
  nvml->pci = "0000:42:00.0";
  assert_int_equal(read_library(FAKE_NVML).valid, BIT(CELSIUS));
  assert_true(nvml->starts == 1 && nvml->ends == 1);
}

static void test_opened_once(void **state) {
  (void)state;
  FakeNvml *nvml = fake(FAKE_NVML);
  VulkanState held = {0};
  DflashDeviceState found;
  const VulkanStateSource source = {ROOT, FAKE_NVML};
  for (int i = 0; i < 3; i++) {
    vulkan_state_read(&held, &nvidia, &source, &found);
    assert_int_equal(found.valid, 0x3f);
  }
  assert_true(nvml->starts == 1 && nvml->ends == 0);
  vulkan_state_close(&held);
  vulkan_state_close(&held);
  assert_int_equal(nvml->ends, 1);
  nvml->find = UNKNOWN;
  for (int i = 0; i < 3; i++) vulkan_state_read(&held, &nvidia, &source, &found);
  assert_true(nvml->starts == 2 && nvml->ends == 2);
  vulkan_state_close(&held);
}

/* Other devices' state is not asked of NVIDIA's library. */
static void test_other_vendor(void **state) {
  (void)state;
  const FakeNvml *nvml = fake(FAKE_NVML);
  VulkanState held = {0};
  DflashDeviceState found;
  vulkan_state_read(&held, &other, &(VulkanStateSource){ROOT, FAKE_NVML}, &found);
  assert_int_equal(found.valid, 0);
  assert_int_equal(nvml->starts, 0);
}

/* The interface's call, of the host: a shorter struct of an older caller keeps what lies behind it. */
static void test_interface(void **state) {
  (void)state;
  static DflashModel model;
  model.device.traits.is_cpu = true;
  DflashDeviceState found = {.struct_size = sizeof found, .valid = UNKNOWN, .watts = 5};
  assert_int_equal(vulkan_device_state(&model, &found, NULL), DFLASH_OK);
  assert_int_equal(found.struct_size, sizeof found);
  assert_true(found.valid & BIT(USERS) && found.other_users >= 0);
  assert_false(found.valid & ~(BIT(CLOCK) | BIT(CELSIUS) | BIT(USERS)));
  assert_true(found.watts == 0);
  found = (DflashDeviceState){.struct_size = offsetof(DflashDeviceState, watts), .watts = 5};
  assert_int_equal(vulkan_device_state(&model, &found, NULL), DFLASH_OK);
  assert_true(found.watts == 5);
}

#define FILES_TEST(name) cmocka_unit_test_setup_teardown(name, remove_files, remove_files)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_library_is_let_go),
      FILES_TEST(test_amdgpu),
      FILES_TEST(test_i915),
      FILES_TEST(test_xe),
      FILES_TEST(test_unreadable),
      FILES_TEST(test_nothing),
      FILES_TEST(test_processor),
      FILES_TEST(test_other_processor),
      FILES_TEST(test_nvml_that_does_not_start),
      cmocka_unit_test(test_nvml),
      cmocka_unit_test(test_old_nvml),
      cmocka_unit_test(test_calls_that_fail),
      cmocka_unit_test(test_users),
      cmocka_unit_test(test_opened_once),
      cmocka_unit_test(test_other_vendor),
      cmocka_unit_test(test_interface),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
