/* What made a result: machine, build, load. */
#ifndef DFLASH_STORE_ENVIRONMENT_H
#define DFLASH_STORE_ENVIRONMENT_H

struct cJSON;

/* One object: time (UTC, ISO 8601), tool version, git revision and dirtiness (of the build), compiler and flags,
 * build type, host name, kernel, cpu model, cpus allowed, governor or "unknown", cpu MHz now, load averages, memory
 * total and available, virtual machine or not, OPENBLAS_* and OMP_* variables. NULL: memory is out. */
struct cJSON *dflash_environment(void);

#endif
