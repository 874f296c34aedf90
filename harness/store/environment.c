#include "store/environment.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/pool.h"
#include "dflash_build_info.h"
#include "store/machine.h"

extern char **environ;

static void add_time(cJSON *object) {
  char text[32] = "unknown";
  time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  cJSON_AddStringToObject(object, "time", text);
}

static void add_build(cJSON *object) {
  cJSON_AddStringToObject(object, "version", DFLASH_BUILD_VERSION);
  cJSON_AddStringToObject(object, "revision", DFLASH_BUILD_REVISION);
  cJSON_AddStringToObject(object, "dirty", DFLASH_BUILD_DIRTY);
  cJSON_AddStringToObject(object, "compiler", DFLASH_BUILD_COMPILER);
  cJSON_AddStringToObject(object, "flags", DFLASH_BUILD_FLAGS);
  cJSON_AddStringToObject(object, "build_type", DFLASH_BUILD_TYPE);
}

static void add_system(cJSON *object) {
  struct utsname names;
  char text[sizeof names.sysname + sizeof names.release + sizeof names.machine + 3] = "unknown";
  bool known = uname(&names) == 0;
  if (known) snprintf(text, sizeof text, "%s %s %s", names.sysname, names.release, names.machine);
  cJSON_AddStringToObject(object, "host", known && *names.nodename ? names.nodename : "unknown");
  cJSON_AddStringToObject(object, "kernel", text);
}

static void add_load(cJSON *object) {
  double load[3];
  int count = getloadavg(load, 3);
  cJSON_AddItemToObject(object, "load", cJSON_CreateDoubleArray(load, count > 0 ? count : 0));
}

/* Settings that change what a math library does. */
static void add_variables(cJSON *object) {
  cJSON *variables = cJSON_AddObjectToObject(object, "variables");
  for (char **entry = environ; variables && entry && *entry; entry++) {
    const char *equals = strchr(*entry, '=');
    if (!equals || (strncmp(*entry, "OPENBLAS_", 9) != 0 && strncmp(*entry, "OMP_", 4) != 0)) continue;
    char *name = strndup(*entry, (size_t)(equals - *entry));
    if (name) cJSON_AddStringToObject(variables, name, equals + 1);
    free(name);
  }
}

cJSON *dflash_environment(void) {
  cJSON *object = cJSON_CreateObject();
  if (!object) return NULL;
  add_time(object);
  add_build(object);
  add_system(object);
  dflash_machine_add(object);
  cJSON_AddNumberToObject(object, "cpus_allowed", dflash_cpu_count());
  add_load(object);
  add_variables(object);
  return object;
}
