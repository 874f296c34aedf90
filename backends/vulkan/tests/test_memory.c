/* Buffers, arenas, uploads and downloads on a device. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

static VulkanDevice device;

/* Bytes that differ from place to place. */
static unsigned char pattern(uint64_t i) { return (unsigned char)(i * 2654435761u >> 13 ^ i >> 24); }

static unsigned char *make_pattern(uint64_t bytes) {
  unsigned char *data = malloc(bytes);
  assert_non_null(data);
  for (uint64_t i = 0; i < bytes; i++) data[i] = pattern(i);
  return data;
}

static void check_pattern(VulkanRange range, uint64_t bytes) {
  DflashError error = {0};
  unsigned char *data = malloc(bytes + 1);
  assert_non_null(data);
  data[bytes] = 0xa5;
  test_ok(vulkan_download(&device, range, data, bytes, &error), &error);
  for (uint64_t i = 0; i < bytes; i++)
    if (data[i] != pattern(i)) fail_msg("byte %llu of %llu", (unsigned long long)i, (unsigned long long)bytes);
  assert_int_equal(data[bytes], 0xa5);
  free(data);
}

static void check_round_trip(uint64_t bytes) {
  DflashError error = {0};
  VulkanBuffer buffer;
  VulkanUpload upload;
  unsigned char *data = make_pattern(bytes);
  test_ok(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, bytes, "a test", &buffer, &error), &error);
  const VulkanRange range = vulkan_buffer_range(&buffer, 0, bytes);
  test_ok(vulkan_upload_begin(&device, &upload, &error), &error);
  test_ok(vulkan_upload_copy(&device, &upload, range, data, bytes, &error), &error);
  test_ok(vulkan_upload_end(&device, &upload, &error), &error);
  check_pattern(range, bytes);
  vulkan_buffer_close(&device, &buffer);
  free(data);
}

static void test_odd_sizes(void **state) {
  (void)state;
  static const uint64_t sizes[] = {1, 2, 3, 4, 5, 15, 16, 17, 4095, 65537, 1000003};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_round_trip(sizes[i]);
}

static void test_more_than_staging(void **state) {
  (void)state;
  check_round_trip(VULKAN_STAGING_BYTES);
  check_round_trip(2 * (uint64_t)VULKAN_STAGING_BYTES + 12345);
}

/* Many small pieces, more than the staging buffer holds, placed by hand. */
static void test_pieces(void **state) {
  (void)state;
  enum { PIECE = 100004, PIECES = 400 };
  DflashError error = {0};
  VulkanBuffer buffer;
  VulkanUpload upload;
  test_ok(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, (uint64_t)PIECE * PIECES, "a test", &buffer, &error), &error);
  const VulkanRange range = vulkan_buffer_range(&buffer, 0, (uint64_t)PIECE * PIECES);
  test_ok(vulkan_upload_begin(&device, &upload, &error), &error);
  for (uint64_t i = 0; i < PIECES; i++) {
    void *host = NULL;
    test_ok(vulkan_upload_place(&device, &upload, range, i * PIECE, PIECE, &host, &error), &error);
    for (uint64_t j = 0; j < PIECE; j++) ((unsigned char *)host)[j] = pattern(i * PIECE + j);
  }
  test_ok(vulkan_upload_end(&device, &upload, &error), &error);
  check_pattern(range, range.bytes);
  vulkan_buffer_close(&device, &buffer);
}

static void test_wrong_uploads(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanBuffer buffer;
  VulkanUpload upload;
  void *host = NULL;
  test_ok(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, 64, "a test", &buffer, &error), &error);
  const VulkanRange range = vulkan_buffer_range(&buffer, 0, 64);
  test_ok(vulkan_upload_begin(&device, &upload, &error), &error);
  assert_int_equal(vulkan_upload_place(&device, &upload, range, 0, 0, &host, &error), DFLASH_INTERNAL);
  assert_int_equal(vulkan_upload_place(&device, &upload, range, 2, 4, &host, &error), DFLASH_INTERNAL);
  assert_int_equal(vulkan_upload_place(&device, &upload, range, 4, 61, &host, &error), DFLASH_INTERNAL);
  assert_int_equal(vulkan_upload_place(&device, &upload, range, 68, 1, &host, &error), DFLASH_INTERNAL);
  test_ok(vulkan_upload_place(&device, &upload, range, 4, 60, &host, &error), &error);
  memset(host, 0, 60);
  test_ok(vulkan_upload_end(&device, &upload, &error), &error);
  char data[65];
  assert_int_equal(vulkan_download(&device, range, data, 65, &error), DFLASH_INTERNAL);
  vulkan_buffer_close(&device, &buffer);
}

static void test_mapped(void **state) {
  (void)state;
  DflashError error = {0};
  for (int kind = VULKAN_UPLOAD; kind <= VULKAN_READBACK; kind++) {
    VulkanBuffer buffer;
    test_ok(vulkan_buffer_open(&device, kind, 100, "a test", &buffer, &error), &error);
    assert_non_null(buffer.mapped);
    for (uint64_t i = 0; i < 100; i++) ((unsigned char *)buffer.mapped)[i] = pattern(i);
    test_ok(vulkan_buffer_flush(&device, &buffer, &error), &error);
    check_pattern(vulkan_buffer_range(&buffer, 0, 100), 100);
    test_ok(vulkan_buffer_invalidate(&device, &buffer, &error), &error);
    vulkan_buffer_close(&device, &buffer);
    assert_null(buffer.mapped);
  }
}

/* Memory that has to be flushed: the calls are made, whole, whatever the size. */
static void test_incoherent(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanBuffer buffer;
  test_ok(vulkan_buffer_open(&device, VULKAN_READBACK, 101, "a test", &buffer, &error), &error);
  buffer.incoherent = true;
  const uint64_t calls = device.api.fault.calls;
  test_ok(vulkan_buffer_flush(&device, &buffer, &error), &error);
  test_ok(vulkan_buffer_invalidate(&device, &buffer, &error), &error);
  assert_int_equal(device.api.fault.calls, calls + 2);
  vulkan_buffer_close(&device, &buffer);
}

static void test_too_large(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanBuffer buffer;
  assert_int_equal(
      vulkan_buffer_open(&device, VULKAN_ON_DEVICE, device.traits.max_allocation + 1, "a giant", &buffer, &error),
      DFLASH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "a giant"));
  assert_int_equal(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, UINT64_MAX, "a giant", &buffer, &error),
                   DFLASH_UNSUPPORTED);
  assert_null(buffer.buffer);
}

static void test_place(void **state) {
  (void)state;
  const uint64_t align = device.traits.offset_align > 16 ? device.traits.offset_align : 16;
  uint64_t offset = 0;
  assert_int_equal(vulkan_place(&device, &offset, 1), 0);
  assert_int_equal(vulkan_place(&device, &offset, align), align);
  assert_int_equal(vulkan_place(&device, &offset, align + 1), 2 * align);
  assert_int_equal(offset, 4 * align);
  assert_int_equal(vulkan_place(&device, &offset, 0), 4 * align);
  assert_int_equal(offset, 4 * align);
}

enum {
  LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
  VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
  COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
  CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
  LAZY = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT
};

static void check_types(const int *flags, uint32_t count, uint32_t allowed, int on_device, int upload, int readback,
                        int input) {
  VkPhysicalDeviceMemoryProperties memory = {.memoryTypeCount = count};
  for (uint32_t i = 0; i < count; i++) memory.memoryTypes[i].propertyFlags = (VkMemoryPropertyFlags)flags[i];
  assert_int_equal(vulkan_memory_type(&memory, allowed, VULKAN_ON_DEVICE), on_device);
  assert_int_equal(vulkan_memory_type(&memory, allowed, VULKAN_UPLOAD), upload);
  assert_int_equal(vulkan_memory_type(&memory, allowed, VULKAN_READBACK), readback);
  assert_int_equal(vulkan_memory_type(&memory, allowed, VULKAN_INPUT), input);
}

/* Offsets count from the buffer's address, which is aligned as far as kernels read at once. */
static void test_addresses(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanBuffer buffer;
  const bool has = device.traits.addresses;
  test_ok(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, 4096, "a test", &buffer, &error), &error);
  const uint64_t first = vulkan_range_address(&device, vulkan_buffer_range(&buffer, 0, 16));
  if (has) {
    assert_true(first != 0 && first % 16 == 0);
    assert_true(vulkan_range_address(&device, vulkan_buffer_range(&buffer, 1024, 16)) == first + 1024);
  }
  device.traits.addresses = false;
  assert_true(vulkan_range_address(&device, vulkan_buffer_range(&buffer, 1024, 16)) == 0);
  device.traits.addresses = has;
  vulkan_buffer_close(&device, &buffer);
}

static void test_memory_types(void **state) {
  (void)state;
  static const int discrete[] = {
      0, LOCAL | VISIBLE | COHERENT, LOCAL, LOCAL | LAZY, VISIBLE | COHERENT, VISIBLE | COHERENT | CACHED};
  static const int shared[] = {LOCAL | VISIBLE | COHERENT | CACHED};
  static const int phone[] = {LOCAL | VISIBLE | COHERENT, LOCAL | VISIBLE | CACHED};
  static const int blind[] = {LOCAL};
  static const int late[] = {VISIBLE | COHERENT, LOCAL | VISIBLE | COHERENT, LOCAL};
  check_types(discrete, 6, 0x3f, 2, 4, 5, 1);
  check_types(discrete, 6, 0x1b, 1, 4, 4, 1); /* not all are allowed */
  check_types(discrete, 6, 0x3d, 2, 4, 5, 4);
  check_types(shared, 1, 1, 0, 0, 0, 0);
  check_types(phone, 2, 3, 0, 0, 1, 0);
  check_types(blind, 1, 1, 0, -1, -1, -1);
  check_types(late, 3, 7, 2, 0, 0, 1);
  check_types(shared, 1, 0, -1, -1, -1, -1);
}

static void check_apart(VulkanRange a, VulkanRange b) {
  if (a.buffer == b.buffer) assert_true(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
}

/* Small pieces share a block; large ones have their own, and the block that is being filled goes on. */
static void test_arena(void **state) {
  (void)state;
  static const uint64_t sizes[] = {100, 3000001, 5, 100000, 70u << 20, 17, 0, 1000000, 15u << 20, 40u << 20, 1, 41};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  DflashError error = {0};
  VulkanArena arena = {0};
  VulkanRange ranges[COUNT];
  uint64_t asked = 0;
  for (size_t i = 0; i < COUNT; i++) {
    test_ok(vulkan_arena_take(&device, &arena, sizes[i], "a test", &ranges[i], &error), &error);
    assert_int_equal(ranges[i].bytes, sizes[i]);
    assert_int_equal(ranges[i].offset % device.traits.offset_align, 0);
    asked += sizes[i];
    for (size_t j = 0; j < i; j++) check_apart(ranges[j], ranges[i]);
  }
  assert_ptr_not_equal(ranges[0].buffer, ranges[1].buffer);
  for (size_t i = 2; i < 6; i++)
    if (i != 4) assert_ptr_equal(ranges[0].buffer, ranges[i].buffer);
  assert_ptr_equal(ranges[7].buffer, ranges[8].buffer);
  assert_ptr_equal(ranges[8].buffer, ranges[11].buffer);
  assert_true(arena.bytes >= asked && arena.bytes <= 2 * asked);
  vulkan_arena_close(&device, &arena);
  assert_int_equal(arena.count, 0);
  vulkan_arena_close(&device, &arena);
}

/* Many equal pieces: few blocks, little unused. */
static void test_arena_grows(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanArena arena = {0};
  VulkanRange range;
  for (int i = 0; i < 3000; i++) test_ok(vulkan_arena_take(&device, &arena, 50000, "a test", &range, &error), &error);
  assert_true(arena.count <= 10);
  assert_true(arena.bytes <= 2 * 3000 * 50000);
  vulkan_arena_close(&device, &arena);
}

int main(void) {
  test_device_open(&device);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_odd_sizes),    cmocka_unit_test(test_more_than_staging),
      cmocka_unit_test(test_pieces),       cmocka_unit_test(test_wrong_uploads),
      cmocka_unit_test(test_mapped),       cmocka_unit_test(test_incoherent),
      cmocka_unit_test(test_too_large),    cmocka_unit_test(test_place),
      cmocka_unit_test(test_memory_types), cmocka_unit_test(test_arena),
      cmocka_unit_test(test_arena_grows),  cmocka_unit_test(test_addresses),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_device_close(&device) ? failed : 1;
}
