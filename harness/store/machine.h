/* What /proc and /sys tell about this machine. Internal to store. */
#ifndef DFLASH_STORE_MACHINE_H
#define DFLASH_STORE_MACHINE_H

struct cJSON;

/* Adds cpu, cpu_mhz, governor, virtual_machine, memory_total_bytes, memory_available_bytes; "unknown" where the system
 * does not say. */
void dflash_machine_add(struct cJSON *environment);

#endif
