/* The page itself is made by Python (reports/): this finds the files and an interpreter that can, and becomes it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"

#define SCRIPT "report.py"
#define VENV_PYTHON DFLASH_VENV "/bin/python"

static const char usage[] =
    "usage: dflash-harness report RESULTS... -o FOLDER [OPTIONS]\n"
    "       dflash-harness report HISTORY --trends -o FOLDER\n\n"
    "Makes one HTML page that needs nothing else, and its figures as SVG and PNG (docs/report.md). RESULTS are\n"
    "JSON-lines files of runs, HISTORY is the SQLite file of --history: its newest night and its trends. The page "
    "tells\n"
    "what is wrong; the exit status is 0 when it is written. Needs Python with matplotlib: $DFLASH_PYTHON, what "
    "ci/python\n"
    "made, or python3.";

typedef struct ReportArguments {
  const char *output, *title;
  int trends;
} ReportArguments;

static DflashStatus find_script(char *path, DflashError *error) {
  char folder[PATH_MAX] = ".";
  ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (n > 0) folder[n] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash != NULL) *slash = '\0';
  DflashText beside = {0};
  dflash_text_append(&beside, "%s/../" DFLASH_INSTALLED_REPORTS "/" SCRIPT, folder);
  const char *places[] = {beside.data != NULL ? beside.data : "", DFLASH_SOURCE_REPORTS "/" SCRIPT};
  DflashStatus status = DFLASH_UNAVAILABLE;
  for (int i = 0; i < 2 && status != DFLASH_OK; i++)
    if (access(places[i], R_OK) == 0 && realpath(places[i], path) != NULL) status = DFLASH_OK;
  if (status != DFLASH_OK)
    dflash_error_set(error, status, "the Python files of the report are not here: neither %s nor %s", places[0],
                     places[1]);
  dflash_text_free(&beside);
  return status;
}

/* In the child: nothing of the attempt is seen. */
static void become_probe(const char *python) {
  static const char can[] = "import sys, importlib.util as u\n"
                            "sys.exit(sys.version_info < (3, 10) or not u.find_spec('matplotlib'))";
  int null = open("/dev/null", O_RDWR);
  for (int i = 0; i <= 2 && null >= 0; i++) dup2(null, i);
  execlp(python, python, "-c", can, (char *)NULL);
  _exit(127);
}

static bool can_draw(const char *python) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) become_probe(python);
  if (child < 0) return false;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static DflashStatus find_python(const char **python, DflashError *error) {
  const char *asked = getenv("DFLASH_PYTHON");
  if (asked != NULL && asked[0] != '\0') {
    *python = asked;
    return can_draw(asked)
               ? DFLASH_OK
               : dflash_error_set(error, DFLASH_UNAVAILABLE,
                                  "DFLASH_PYTHON: '%s' is no Python from 3.10 on that has matplotlib", asked);
  }
  /* ci/python writes the list when all of it is installed: nothing is left to try. */
  *python = VENV_PYTHON;
  if (access(DFLASH_VENV "/requirements.txt", R_OK) == 0 && access(*python, X_OK) == 0) return DFLASH_OK;
  static const char *const places[] = {VENV_PYTHON, "python3"};
  for (int i = 0; i < 2; i++) {
    *python = places[i];
    if (can_draw(places[i])) return DFLASH_OK;
  }
  return dflash_error_set(error, DFLASH_UNAVAILABLE,
                          "no Python from 3.10 on with matplotlib is here (%s, python3); 'ci/python --version' makes "
                          "one, DFLASH_PYTHON names another",
                          places[0]);
}

/* Comes back only on failure. */
static DflashStatus become_report(const ReportArguments *a, char **files, int count, DflashError *error) {
  const char *python = NULL;
  char script[PATH_MAX];
  DflashStatus status = find_script(script, error);
  if (status == DFLASH_OK) status = find_python(&python, error);
  if (status != DFLASH_OK) return status;
  const char **words = calloc((size_t)count + 10, sizeof *words);
  if (words == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for %d file names", count);
  int n = 0;
  words[n++] = python;
  if (strncmp(script, DFLASH_SOURCE_REPORTS, strlen(DFLASH_SOURCE_REPORTS)) != 0)
    words[n++] = "-B"; /* no __pycache__ where the program is installed */
  words[n++] = script;
  words[n++] = "--output";
  words[n++] = a->output;
  if (a->title != NULL) words[n++] = "--title";
  if (a->title != NULL) words[n++] = a->title;
  if (a->trends) words[n++] = "--trends";
  words[n++] = "--";
  memcpy(words + n, files, (size_t)count * sizeof *words);
  execvp(python, (char **)words);
  status = dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: cannot be started: %s", python, strerror(errno));
  free(words);
  return status;
}

int dflash_command_report(int argc, char **argv) {
  ReportArguments a = {0};
  const DflashArgument table[] = {
      {"output,o", "FOLDER", "gets index.html and figures/; made when it is missing", DFLASH_ARGUMENT_TEXT, &a.output,
       0},
      {"trends", NULL, "trends alone: quick, however long the history", DFLASH_ARGUMENT_FLAG, &a.trends, 0},
      {"title", "TEXT", "what the page is called", DFLASH_ARGUMENT_TEXT, &a.title, 0}};
  int operands = 0, helped = 0;
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, 3, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && operands < 1)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT,
                              "no results are given: JSON-lines files of runs, or a history");
  if (status == DFLASH_OK && (a.output == NULL || a.output[0] == '\0'))
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "--output is missing: the folder that gets the page");
  if (status == DFLASH_OK) become_report(&a, argv + 1, operands, &error);
  return dflash_command_fail(&error);
}
