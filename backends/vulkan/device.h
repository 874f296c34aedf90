/* A device, what it can do, and what is used of it. */
#ifndef DFLASH_VULKAN_DEVICE_H
#define DFLASH_VULKAN_DEVICE_H

#include "api.h"

#include "dflash/backend.h"

/* What was found; sizes in bytes. */
typedef struct VulkanTraits {
  bool is_cpu;
  bool integer_dot;    /* packed 4x8 bit dot products can be used (shaderIntegerDotProduct) */
  bool mapped_local;   /* memory of its own that the host can write */
  bool addresses;      /* kernels can read buffers by address (bufferDeviceAddress, shaderInt64) */
  bool denormals_kept; /* the device can be told to keep f32 denormals */
  bool statistics;     /* of kernels, by VK_KHR_pipeline_executable_properties */
  uint32_t api_version;
  uint32_t vendor; /* as PCI numbers them */
  uint32_t subgroup_size;
  uint32_t coop_f16;    /* rows of x, 8 and 16 as bits, that matrix units take in f16; 0: none */
  uint32_t max_threads; /* of a workgroup, at least 128 by the standard */
  uint32_t max_groups[3];
  uint32_t max_storage_buffers; /* that one kernel binds */
  uint32_t timestamp_bits;      /* valid ones; 0: no timestamps */
  double timestamp_ns;          /* of a tick */
  uint64_t shared_bytes;        /* of a workgroup; at least 16384 by the standard */
  uint64_t max_binding;         /* range of a storage buffer */
  uint64_t max_allocation;
  uint64_t offset_align; /* of a storage buffer's offset in its buffer */
  uint64_t memory_bytes; /* of the largest device-local heap */
  char name[128], driver[128], id[64];
  char pci[32]; /* "domain:bus:device.function"; "": not known */
} VulkanTraits;

enum { VULKAN_MESSAGE_BYTES = 800 };

/* What the validation layers said first, and how often they spoke. */
typedef struct VulkanMessages {
  uint32_t count;
  char first[VULKAN_MESSAGE_BYTES];
} VulkanMessages;

/* Must not move while it is open: the validation layers hold its address. */
typedef struct VulkanDevice {
  VulkanApi api;
  VulkanTraits traits;
  VulkanMessages messages;
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger; /* with validation */
  VkPhysicalDevice physical;
  VkPhysicalDeviceMemoryProperties memory;
  VkDevice device;
  VkQueue queue; /* one, with compute and copies */
  uint32_t family;
  bool statistics;    /* of kernels, wanted and there */
  VkCommandPool pool; /* command buffers can be reset one by one */
  bool lost;          /* a call said so, or work did not end in time: no further work is tried, closing still works */
} VulkanDevice;

typedef struct VulkanDeviceOptions {
  const char *id;  /* of traits; NULL or "": a discrete device first, a processor last */
  bool validation; /* layers with synchronisation and best practices; absent ones are DFLASH_UNAVAILABLE */
  bool statistics; /* of kernels, where the device has them */
  const struct VulkanAssumed *assumed; /* assume.h; NULL: what the device says */
  VulkanFault fault;                   /* planted from the device's opening on */
} VulkanDeviceOptions;

/* All devices of version 1.2 or later that have a queue with compute. */
DflashStatus vulkan_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error);
/* Closes what was opened on failure. A device that lacks something needed is DFLASH_UNSUPPORTED, naming it. */
DflashStatus vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error);
void vulkan_device_close(VulkanDevice *device); /* zeroed or half open: fine; waits for the device's work */

/* DFLASH_DEVICE_LOST once the device is lost, WHAT being what cannot be done any more. */
DflashStatus vulkan_device_usable(const VulkanDevice *device, DflashError *error, const char *what);
/* Before anything is destroyed that submitted work may use: waits for work that was given up; else returns at once. */
void vulkan_device_settle(VulkanDevice *device);

/* DFLASH_INTERNAL with the first message of the validation layers when there is one, else DFLASH_OK. */
DflashStatus vulkan_device_check(VulkanDevice *device, DflashError *error);
/* As vulkan_result, and notes a lost device. */
DflashStatus vulkan_device_result(VulkanDevice *device, VkResult result, DflashError *error, const char *what);

/* Submits and waits, 60 s at most; longer is DFLASH_TIMED_OUT, and the device counts as lost. On return nothing is at
 * work any more unless the device is lost. The fence belongs to the caller and is reset first. */
DflashStatus vulkan_device_run(VulkanDevice *device, VkCommandBuffer commands, VkFence fence, DflashError *error);

#endif
