#include "harness/tests/plugins/plugin.h"

DflashBackend plugin_reference(const char *name) {
  DflashBackend backend = reference_backend;
  backend.name = name;
  backend.about = "wrong on purpose, for tests";
  return backend;
}
