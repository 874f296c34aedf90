#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

enum { WORDS_MAX = 64, LIMIT_S = 300 };

/* ---- running ---- */

static int split(char *text, char **words) {
  int count = 0;
  char *rest = NULL;
  words[count++] = (char *)DFLASH_HARNESS_PROGRAM;
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    assert_true(count < WORDS_MAX - 1);
    words[count++] = word;
  }
  words[count] = NULL;
  return count;
}

static void start(char **words, const ProgramLimits *limits, int out, int err) {
  int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(limits->stdout_path ? open(limits->stdout_path, O_WRONLY) : out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  setenv("DFLASH_BACKEND_PATH", DFLASH_TEST_BACKEND_FOLDER, 1);
  if (limits->variable) putenv((char *)limits->variable);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (limits->file_bytes > 0)
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)limits->file_bytes, (rlim_t)limits->file_bytes});
  signal(SIGSEGV, SIG_DFL);
  execv(limits->program ? limits->program : words[0], words);
  _exit(126);
}

static int count_lines(const char *path) {
  int lines = 0;
  FILE *file = fopen(path, "r");
  for (int c; file && (c = fgetc(file)) != EOF;) lines += c == '\n';
  if (file) fclose(file);
  return lines;
}

/* The wait status. The kill falls between two cases as often as within one. */
static int wait_for(pid_t child, const ProgramLimits *limits, const char *command) {
  int how;
  for (int64_t waited = 0;; waited++) {
    pid_t ended = waitpid(child, &how, WNOHANG);
    if (ended == child) return how;
    if (limits->kill_after > 0 && count_lines(limits->kill_file) >= limits->kill_after) kill(child, SIGKILL);
    if (waited > 1000 * LIMIT_S) {
      kill(child, SIGKILL);
      waitpid(child, &how, 0);
      fail_msg("did not end in %d s: %s", LIMIT_S, command);
    }
    poll(NULL, 0, 1);
  }
}

static char *text_of(int descriptor) {
  struct stat info;
  assert_int_equal(fstat(descriptor, &info), 0);
  char *text = calloc(1, (size_t)info.st_size + 1);
  assert_non_null(text);
  assert_int_equal(pread(descriptor, text, (size_t)info.st_size, 0), info.st_size);
  close(descriptor);
  return text;
}

static int unnamed_file(void) {
  int descriptor = open(DFLASH_SCRATCH_FOLDER, O_TMPFILE | O_RDWR, 0600);
  if (descriptor < 0) { /* a file system without them */
    char name[] = DFLASH_SCRATCH_FOLDER "/output-XXXXXX";
    descriptor = mkstemp(name);
    unlink(name);
  }
  assert_true(descriptor >= 0);
  return descriptor;
}

static Program run(const ProgramLimits *limits, const char *format, va_list arguments) {
  Program p = {.status = -1};
  char *words[WORDS_MAX], *text;
  assert_true(vasprintf(&p.command, format, arguments) >= 0);
  text = strdup(p.command);
  split(text, words);
  int out = unnamed_file(), err = unnamed_file();
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) start(words, limits, out, err);
  int how = wait_for(child, limits, p.command);
  if (WIFEXITED(how)) p.status = WEXITSTATUS(how);
  p.out = text_of(out);
  p.err = text_of(err);
  free(text);
  return p;
}

Program program(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Program p = run(&(ProgramLimits){0}, format, arguments);
  va_end(arguments);
  return p;
}

Program program_limited(const ProgramLimits *limits, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Program p = run(limits, format, arguments);
  va_end(arguments);
  return p;
}

void program_close(Program *p) {
  free(p->command);
  free(p->out);
  free(p->err);
  *p = (Program){0};
}

/* ---- what came of it ---- */

void expect_status(const Program *p, int status) {
  if (p->status == status) return;
  fail_msg("%s\nexit status %d, expected %d\n%s%s", p->command, p->status, status, p->out, p->err);
}

void expect_run(int status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Program p = run(&(ProgramLimits){0}, format, arguments);
  va_end(arguments);
  expect_status(&p, status);
  program_close(&p);
}

void expect_contains(const Program *p, const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("%s\ndoes not say '%s' but:\n%s", p->command, part, text);
}

static void expect_one_line(const Program *p) {
  static const char begin[] = "dflash-harness: error: ";
  const char *end = strchr(p->err, '\n');
  if (strncmp(p->err, begin, sizeof begin - 1) != 0 || !end || end[1] != '\0')
    fail_msg("%s\nis not one error line:\n%s", p->command, p->err);
}

void expect_error(int status, const char *parts, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Program p = run(&(ProgramLimits){0}, format, arguments);
  va_end(arguments);
  expect_status(&p, status);
  expect_one_line(&p);
  char *copy = strdup(parts), *rest = NULL;
  for (char *part = strtok_r(copy, "|", &rest); part; part = strtok_r(NULL, "|", &rest))
    expect_contains(&p, p.err, part);
  free(copy);
  program_close(&p);
}

/* ---- scratch ---- */

static char *scratch(void) {
  static char folder[512]; /* of this process */
  return folder;
}

int scratch_setup(void **state) {
  (void)state;
  snprintf(scratch(), 512, "%s/cli-%ld", DFLASH_SCRATCH_FOLDER, (long)getpid());
  return mkdir(scratch(), 0777) != 0 || chdir(scratch()) != 0;
}

int scratch_setup_golden(void **state) {
  if (scratch_setup(state) != 0) return -1;
  Program p = program("golden make --preset tiny --case main,rewind,cut -o t.h5");
  int failed = p.status != 0;
  if (failed) print_error("%s", p.err);
  program_close(&p);
  return failed;
}

static void remove_folder(const char *path) {
  struct dirent **entries = NULL;
  int count = scandir(path, &entries, NULL, NULL);
  for (int i = 0; i < count; i++) {
    char name[1024];
    snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
    if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0 && unlink(name) != 0)
      remove_folder(name);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  rmdir(path);
}

int scratch_teardown(void **state) {
  (void)state;
  if (chdir(DFLASH_SCRATCH_FOLDER) != 0) return -1;
  remove_folder(scratch());
  return 0;
}

void expect_no_leftovers(void) {
  struct dirent **entries = NULL;
  int count = scandir(".", &entries, NULL, NULL);
  assert_true(count >= 0);
  for (int i = 0; i < count; i++) {
    if (strstr(entries[i]->d_name, ".tmp")) fail_msg("left behind: %s", entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
}

bool file_exists(const char *path) { return access(path, F_OK) == 0; }

char *read_whole(const char *path, size_t *size) {
  char *data;
  uint64_t bytes;
  DflashError error = {0};
  if (dflash_read_file(path, (uint64_t)1 << 30, &data, &bytes, &error) != DFLASH_OK) fail_msg("%s", error.message);
  *size = (size_t)bytes;
  return data;
}

void write_whole(const char *path, const void *data, size_t size) {
  DflashError error = {0};
  if (dflash_write_file(path, data, size, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

void copy_whole(const char *from, const char *to) {
  size_t size;
  char *data = read_whole(from, &size);
  write_whole(to, data, size);
  free(data);
}

/* ---- records ---- */

cJSON *read_records(const char *path) {
  size_t size;
  char *text = read_whole(path, &size);
  cJSON *records = cJSON_CreateArray();
  assert_true(size == 0 || text[size - 1] == '\n');
  for (char *line = text, *end; *line; line = end + 1) {
    end = strchr(line, '\n');
    *end = '\0';
    cJSON *record = cJSON_Parse(line);
    if (!cJSON_IsObject(record)) fail_msg("%s: no record: %s", path, line);
    assert_string_equal(text_in(record, "schema"), "dflash-record");
    assert_int_equal(number_in(record, "version"), 1);
    cJSON_AddItemToArray(records, record);
  }
  free(text);
  return records;
}

const char *text_in(const cJSON *record, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, name));
  return text ? text : "";
}

double number_in(const cJSON *record, const char *name) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(record, name);
  if (!cJSON_IsNumber(item)) fail_msg("no number %s in a record of type %s", name, text_in(record, "type"));
  return item->valuedouble;
}

int count_records(const cJSON *records, const char *type) {
  int count = 0;
  const cJSON *record;
  cJSON_ArrayForEach(record, records) count += strcmp(text_in(record, "type"), type) == 0;
  return count;
}

const cJSON *case_of(const cJSON *records, const char *name) {
  const cJSON *record, *found = NULL;
  cJSON_ArrayForEach(record, records) {
    if (strcmp(text_in(record, "type"), "case") == 0 && strcmp(text_in(record, "case"), name) == 0) found = record;
  }
  if (!found) fail_msg("no record of case %s", name);
  return found;
}

const cJSON *last_record(const cJSON *records) {
  const cJSON *record = cJSON_GetArrayItem(records, cJSON_GetArraySize(records) - 1);
  assert_non_null(record);
  return record;
}

const cJSON *verdict_of(const cJSON *records, const char *case_name, const char *mode, const char *stage, int layer) {
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(record, "layer");
    if (strcmp(text_in(record, "type"), "verdict") == 0 && strcmp(text_in(record, "case"), case_name) == 0 &&
        strcmp(text_in(record, "mode"), mode) == 0 && strcmp(text_in(record, "stage"), stage) == 0 &&
        (layer < 0 || (own && own->valueint == layer)))
      return record;
  }
  return NULL;
}
