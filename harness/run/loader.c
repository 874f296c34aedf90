#include "run/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

#define FILE_PREFIX "dflash-backend-"
#define FILE_SUFFIX ".so"

/* The folder of the running program; "." when it cannot be told. */
static void program_folder(char *folder, size_t size) {
  ssize_t n = readlink("/proc/self/exe", folder, size - 1);
  if (n <= 0) {
    snprintf(folder, size, ".");
    return;
  }
  folder[n] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash != NULL) *slash = '\0';
}

/* Every place to look, joined by ':'. */
static void search_path(const char *search, DflashText *path) {
  char folder[PATH_MAX];
  program_folder(folder, sizeof folder);
  const char *variable = getenv("DFLASH_BACKEND_PATH");
  if (search != NULL && search[0] != '\0') dflash_text_append(path, "%s:", search);
  if (variable != NULL && variable[0] != '\0') dflash_text_append(path, "%s:", variable);
  dflash_text_append(path, "%s/backends:%s/../%s", folder, folder, DFLASH_INSTALLED_BACKENDS);
}

/* "blas" from ".../dflash-backend-blas.so"; 0 when the file is not named so. */
static int backend_name(const char *file, char *name, size_t size) {
  const char *slash = strrchr(file, '/');
  const char *base = slash != NULL ? slash + 1 : file;
  size_t length = strlen(base), prefix = strlen(FILE_PREFIX), suffix = strlen(FILE_SUFFIX);
  if (length <= prefix + suffix || strncmp(base, FILE_PREFIX, prefix) != 0) return 0;
  if (strcmp(base + length - suffix, FILE_SUFFIX) != 0) return 0;
  snprintf(name, size, "%.*s", (int)(length - prefix - suffix), base + prefix);
  return 1;
}

typedef struct Seen {
  char names[1024][64];
  int count;
  void (*found)(void *context, const char *name, const char *path);
  void *context;
} Seen;

static void see(Seen *seen, const char *path) {
  char name[64];
  if (!backend_name(path, name, sizeof name) || seen->count == 1024) return;
  for (int i = 0; i < seen->count; i++)
    if (strcmp(seen->names[i], name) == 0) return;
  memcpy(seen->names[seen->count++], name, sizeof name);
  seen->found(seen->context, name, path);
}

static void see_folder(Seen *seen, const char *folder) {
  struct dirent **entries = NULL;
  int n = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path) see(seen, path);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
}

void dflash_backend_find(const char *search, void (*found)(void *context, const char *name, const char *path),
                         void *context) {
  Seen *seen = calloc(1, sizeof *seen);
  DflashText path = {0};
  search_path(search, &path);
  if (seen == NULL || path.failed) goto out;
  seen->found = found;
  seen->context = context;
  char *state = NULL;
  for (char *place = strtok_r(path.data, ":", &state); place != NULL; place = strtok_r(NULL, ":", &state)) {
    struct stat info;
    if (stat(place, &info) != 0) continue;
    if (S_ISDIR(info.st_mode))
      see_folder(seen, place);
    else
      see(seen, place);
  }
out:
  dflash_text_free(&path);
  free(seen);
}

DflashStatus dflash_backend_check_search(const char *search, DflashError *error) {
  for (const char *at = search; at != NULL && *at != '\0';) {
    char place[PATH_MAX];
    size_t length = strcspn(at, ":");
    snprintf(place, sizeof place, "%.*s", (int)length, at);
    if (length > 0 && access(place, F_OK) != 0)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--backend-path: '%s' does not exist", place);
    at += length + (at[length] == ':');
  }
  return DFLASH_OK;
}

typedef struct Wanted {
  const char *name;
  char path[1024];
  DflashText known;
} Wanted;

static void want(void *context, const char *name, const char *path) {
  Wanted *wanted = context;
  dflash_text_append(&wanted->known, "%s%s", wanted->known.size > 0 ? ", " : "", name);
  if (strcmp(name, wanted->name) == 0) snprintf(wanted->path, sizeof wanted->path, "%s", path);
}

/* The file of a backend given by name or by path. */
static DflashStatus locate(const char *name, const char *search, char *path, size_t size, DflashError *error) {
  if (strchr(name, '/') != NULL) {
    if (strlen(name) >= size)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "a backend's path is longer than %zu bytes", size - 1);
    snprintf(path, size, "%s", name);
    return DFLASH_OK;
  }
  Wanted wanted = {.name = name};
  dflash_backend_find(search, want, &wanted);
  DflashStatus status = DFLASH_OK;
  if (wanted.path[0] == '\0')
    status = dflash_error_set(error, DFLASH_UNAVAILABLE, "backend '%s' is not here; found: %s", name,
                              wanted.known.size > 0 ? wanted.known.data : "none");
  snprintf(path, size, "%s", wanted.path);
  dflash_text_free(&wanted.known);
  return status;
}

/* The first required member that is not set; NULL when all are. */
static const char *missing_member(const DflashBackend *b) {
#define REQUIRE(member) \
  if (b->member == NULL) return #member
  REQUIRE(name);
  REQUIRE(version);
  REQUIRE(about);
  REQUIRE(options);
  REQUIRE(devices);
  REQUIRE(supports);
  REQUIRE(model_open);
  REQUIRE(model_close);
  REQUIRE(model_info);
  REQUIRE(stage_info);
  REQUIRE(sequence_open);
  REQUIRE(sequence_close);
  REQUIRE(push);
  REQUIRE(truncate);
  REQUIRE(reset);
  REQUIRE(load);
  REQUIRE(span);
  REQUIRE(read_context);
  REQUIRE(block);
  REQUIRE(stage);
  REQUIRE(read_stage);
  REQUIRE(block_time);
  REQUIRE(block_spans);
#undef REQUIRE
  return NULL;
}

static DflashStatus check_struct(const char *path, const DflashBackend *b, DflashError *error) {
  if (b == NULL) return dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: its entry returned no backend", path);
  if (b->abi != DFLASH_BACKEND_ABI)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: built for ABI %u, this harness takes ABI %u", path, b->abi,
                            DFLASH_BACKEND_ABI);
  size_t least = offsetof(DflashBackend, evict_caches);
  if (b->struct_size < least)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: its struct has %u bytes, the required members take %zu",
                            path, b->struct_size, least);
  const char *missing = missing_member(b);
  if (missing != NULL)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: required member '%s' is NULL", path, missing);
  return DFLASH_OK;
}

DflashStatus dflash_backend_load(const char *name, const char *search, DflashLoaded *loaded, DflashError *error) {
  memset(loaded, 0, sizeof *loaded);
  DflashStatus status = locate(name, search, loaded->path, sizeof loaded->path, error);
  if (status != DFLASH_OK) return status;
  loaded->library = dlopen(loaded->path, RTLD_NOW | RTLD_LOCAL);
  if (loaded->library == NULL) return dflash_error_set(error, DFLASH_UNAVAILABLE, "cannot load backend: %s", dlerror());
  DflashBackendEntry entry;
  *(void **)&entry = dlsym(loaded->library, DFLASH_BACKEND_SYMBOL);
  if (entry == NULL)
    status = dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: no symbol '" DFLASH_BACKEND_SYMBOL "'", loaded->path);
  else
    status = check_struct(loaded->path, loaded->backend = entry(), error);
  char file_name[64];
  bool by_name = strchr(name, '/') == NULL && backend_name(loaded->path, file_name, sizeof file_name);
  if (status == DFLASH_OK && by_name && strcmp(file_name, loaded->backend->name) != 0)
    status = dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: calls itself '%s'; the file must be named after it",
                              loaded->path, loaded->backend->name);
  if (status != DFLASH_OK) dflash_backend_unload(loaded);
  return status;
}

void dflash_backend_unload(DflashLoaded *loaded) {
  if (loaded->library != NULL) dlclose(loaded->library);
  loaded->library = NULL;
  loaded->backend = NULL;
}
