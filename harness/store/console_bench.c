#include <cjson/cJSON.h>
#include <math.h>

#include "store/console.h"
#include "store/fields.h"
#include "store/table.h"
#include "store/units.h"

enum { INDENT = 2 };

static void add_time(DflashTable *table, double ns) {
  char text[DFLASH_UNITS_MAX];
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_show_time(ns, text));
}

static void add_share(DflashTable *table, double share) {
  char text[DFLASH_UNITS_MAX];
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_show_share(share, text));
}

/* Above 100% a share is doubtful: a cache served it, or the roofline is too low. */
static const char *show_roofline_share(double share, char text[DFLASH_UNITS_MAX]) {
  char plain[DFLASH_UNITS_MAX];
  snprintf(text, DFLASH_UNITS_MAX, "%.28s%s", dflash_show_share(share, plain), share > 1 ? " !" : "");
  return text;
}

static void add_roofline_share(DflashTable *table, double share) {
  char text[DFLASH_UNITS_MAX];
  dflash_table_cell(table, share > 1 ? DFLASH_COLOUR_WARNING : DFLASH_COLOUR_NONE, "%s",
                    show_roofline_share(share, text));
}

static void add_giga(DflashTable *table, double per_s) {
  char text[DFLASH_UNITS_MAX];
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", dflash_show_giga(per_s, text));
}

static void add_text(DflashTable *table, const char *text) { dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", text); }

static double median_of(const cJSON *object, const char *name) {
  return dflash_field_number(dflash_field(object, name), "median");
}

static void print_title(const DflashConsole *console, const cJSON *record) {
  const cJSON *parity = dflash_field(record, "parity");
  const char *hot = dflash_field_true(record, "cold")        ? "cold: caches evicted before each sample"
                    : dflash_field_true(record, "cache_hot") ? "cache-hot"
                                                             : "caches as they were";
  char score[DFLASH_UNITS_MAX];
  dflash_table_text(console->file, console->coloured, DFLASH_COLOUR_HEAD, "%s %s %s: %s on %s, profile %s",
                    dflash_field_text(record, "what"), dflash_field_text(record, "file"),
                    dflash_field_text(record, "case"), dflash_field_text(record, "backend"),
                    dflash_field_text(record, "device"), dflash_field_text(record, "profile"));
  fputc('\n', console->file);
  dflash_table_text(console->file, false, DFLASH_COLOUR_NONE, "%*sparity %s, largest passing score %s; %s", INDENT, "",
                    dflash_field_text(parity, "outcome"),
                    dflash_show_score(dflash_field_number(parity, "largest_score"), score), hot);
  fputc('\n', console->file);
}

static void add_stage(DflashTable *table, const cJSON *stage, double block_ns) {
  char label[128];
  double ns = median_of(stage, "time");
  add_text(table, dflash_record_label(stage, label, sizeof label));
  add_time(table, ns);
  add_share(table, ns / block_ns);
  add_giga(table, dflash_field_number(stage, "bandwidth"));
  add_giga(table, dflash_field_number(stage, "rate"));
  add_roofline_share(table, dflash_field_number(stage, "share"));
  add_text(table, dflash_field_text(stage, "bound"));
  add_share(table, dflash_field_number(stage, "library_share"));
  int fused = cJSON_GetArraySize(dflash_field(stage, "fused"));
  if (fused > 0)
    dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s (with %d fused)", dflash_field_text(stage, "path"), fused);
  else
    add_text(table, dflash_field_text(stage, "path"));
}

static void print_stages(const DflashConsole *console, const cJSON *record, double block_ns) {
  DflashTable table = {.columns = "lrrrrrlrl"};
  const cJSON *stage, *stages = dflash_field(record, "stages");
  if (cJSON_GetArraySize(stages) == 0) return;
  dflash_table_head(&table, "stage,median,of block,GB/s,GFLOP/s,of roofline,bound,library,path");
  cJSON_ArrayForEach(stage, stages) add_stage(&table, stage, block_ns);
  dflash_table_print(&table, console->file, INDENT, console->coloured);
}

static void print_groups(const DflashConsole *console, const cJSON *record) {
  DflashTable table = {.columns = "lrrrr"};
  const cJSON *group, *groups = dflash_field(record, "groups");
  if (cJSON_GetArraySize(groups) == 0) return;
  dflash_table_head(&table, "group,median,of block,GB/s,of roofline");
  cJSON_ArrayForEach(group, groups) {
    add_text(&table, dflash_field_text(group, "group"));
    add_time(&table, dflash_field_number(group, "ns"));
    add_share(&table, dflash_field_number(group, "share_of_block"));
    add_giga(&table, dflash_field_number(group, "bandwidth"));
    add_roofline_share(&table, dflash_field_number(group, "share"));
  }
  dflash_table_print(&table, console->file, INDENT, console->coloured);
}

static void add_clock(DflashTable *table, const char *name, const cJSON *s) {
  if (!s) return;
  add_text(table, name);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%.0f", dflash_field_number(s, "n"));
  add_time(table, dflash_field_number(s, "min"));
  add_time(table, dflash_field_number(s, "median"));
  add_time(table, dflash_field_number(s, "p95"));
  add_time(table, dflash_field_number(s, "mad"));
  char low[DFLASH_UNITS_MAX], high[DFLASH_UNITS_MAX], half[DFLASH_UNITS_MAX];
  if (dflash_field(s, "low"))
    dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s to %s (+-%s)",
                      dflash_show_time(dflash_field_number(s, "low"), low),
                      dflash_show_time(dflash_field_number(s, "high"), high),
                      dflash_show_share(dflash_field_number(s, "half_width"), half));
  else
    add_text(table, "none: fewer than 6 samples");
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%.2f", dflash_field_number(s, "lag1"));
}

static void print_clocks(const DflashConsole *console, const cJSON *record) {
  DflashTable table = {.columns = "lrrrrrlr"};
  const cJSON *block = dflash_field(record, "block");
  dflash_table_head(&table, "whole,n,min,median,p95,MAD,95% interval of the median,lag 1");
  add_clock(&table, "device", dflash_field(block, "device"));
  add_clock(&table, "wall", dflash_field(block, "wall"));
  add_clock(&table, "cpu", dflash_field(block, "cpu"));
  add_clock(&table, "stamped", dflash_field(record, "stamped"));
  dflash_table_print(&table, console->file, INDENT, console->coloured);
}

static void print_roofline(const DflashConsole *console, const cJSON *record) {
  const cJSON *roofline = dflash_field(record, "roofline"), *block = dflash_field(record, "block");
  char read[DFLASH_UNITS_MAX], matrix[DFLASH_UNITS_MAX], bytes[DFLASH_UNITS_MAX], own[DFLASH_UNITS_MAX];
  char of_read[DFLASH_UNITS_MAX], of_matrix[DFLASH_UNITS_MAX], rate[DFLASH_UNITS_MAX], operations[DFLASH_UNITS_MAX];
  fprintf(console->file, "%*sroofline: read %s GB/s, matrix %s GFLOP/s\n", INDENT, "",
          dflash_show_giga(dflash_field_number(roofline, "read_bytes_per_s"), read),
          dflash_show_giga(dflash_field_number(roofline, "matrix_operations_per_s"), matrix));
  if (dflash_field(roofline, "read_beside_bytes_per_s"))
    fprintf(console->file, "%*sbetween the samples: read %s GB/s (median of %.0f), of which the block has %s\n", INDENT,
            "", dflash_show_giga(dflash_field_number(roofline, "read_beside_bytes_per_s"), read),
            dflash_field_number(roofline, "reads_beside"),
            show_roofline_share(dflash_field_number(block, "share_read_beside"), of_read));
  fprintf(console->file, "%*sblock: %s, %s GFLOP; %s GB/s (%s of read), %s GFLOP/s (%s of matrix)\n", INDENT, "",
          dflash_show_bytes(dflash_field_number(block, "bytes"), bytes),
          dflash_show_giga(dflash_field_number(block, "operations"), operations),
          dflash_show_giga(dflash_field_number(block, "bandwidth"), own),
          show_roofline_share(dflash_field_number(block, "share_read"), of_read),
          dflash_show_giga(dflash_field_number(block, "rate"), rate),
          show_roofline_share(dflash_field_number(block, "share_matrix"), of_matrix));
}

/* "1.43 times as fast": the peer's time over this one. A peer that is far from its own floor is no yardstick. */
static void print_peers(const DflashConsole *console, const cJSON *record) {
  const cJSON *peer;
  char time[DFLASH_UNITS_MAX], share[DFLASH_UNITS_MAX], least[DFLASH_UNITS_MAX];
  cJSON_ArrayForEach(peer, dflash_field(record, "peers")) {
    dflash_table_text(console->file, false, DFLASH_COLOUR_NONE,
                      "%*speer %s %s (%s): %s, %s of read; this backend is %.2f times as fast", INDENT, "",
                      dflash_field_text(peer, "peer"), dflash_field_text(peer, "way"),
                      dflash_field_text(peer, "library"), dflash_show_time(dflash_field_number(peer, "ns"), time),
                      dflash_show_share(dflash_field_number(peer, "share_read"), share),
                      dflash_field_number(peer, "ratio"));
    if (!dflash_field_true(peer, "counts"))
      dflash_table_text(console->file, console->coloured, DFLASH_COLOUR_WARNING,
                        "; the ratio does not count: the peer is below %s of read",
                        dflash_show_share(dflash_field_number(peer, "least_share"), least));
    fputc('\n', console->file);
  }
}

static void print_end(const DflashConsole *console, const cJSON *record) {
  const cJSON *clock = dflash_field(record, "clock");
  char overhead[DFLASH_UNITS_MAX], sum[DFLASH_UNITS_MAX], step[DFLASH_UNITS_MAX], cost[DFLASH_UNITS_MAX];
  const char *refused = dflash_field_text(record, "implausible");
  dflash_table_text(console->file, false, DFLASH_COLOUR_NONE,
                    "%*sstamping costs %s; stages sum to %s of the block; clock steps %s, costs %s; stopped by %s",
                    INDENT, "", dflash_show_share(dflash_field_number(record, "overhead_share"), overhead),
                    dflash_show_share(dflash_field_number(record, "sum_share"), sum),
                    dflash_show_time(dflash_field_number(clock, "resolution_ns"), step),
                    dflash_show_time(dflash_field_number(clock, "cost_ns"), cost),
                    dflash_field_text(record, "stopped_by"));
  fputc('\n', console->file);
  if (dflash_field(record, "stages_note"))
    fprintf(console->file, "%*snote: %s\n", INDENT, "", dflash_field_text(record, "stages_note"));
  if (!*refused) return;
  dflash_table_text(console->file, console->coloured, DFLASH_COLOUR_BAD, "%*simplausible: %s", INDENT, "", refused);
  fputc('\n', console->file);
}

void dflash_console_bench(const DflashConsole *console, const cJSON *record) {
  print_title(console, record);
  print_stages(console, record, median_of(dflash_field(record, "block"), "device"));
  print_groups(console, record);
  print_clocks(console, record);
  print_roofline(console, record);
  print_end(console, record);
  print_peers(console, record);
}
