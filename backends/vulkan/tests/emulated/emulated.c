#include "emulated.h"

#include "emulated_f16.h"
#include "emulated_i8.h"
#include "emulated_q4.h"
#include "emulated_q4_direct.h"
#include "emulated_q8.h"
#include "emulated_q8_direct.h"

#define ROW(id, name) [VULKAN_KERNEL_##id - EMULATED_FIRST] = {#name, MODULE_##name}

const VulkanModule vulkan_emulated[EMULATED_COUNT] = {ROW(COOP_F16, emulated_f16),
                                                      ROW(COOP_Q8, emulated_q8),
                                                      ROW(COOP_Q4, emulated_q4),
                                                      ROW(COOP_I8, emulated_i8),
                                                      ROW(COOP_Q8_DIRECT, emulated_q8_direct),
                                                      ROW(COOP_Q4_DIRECT, emulated_q4_direct)};
