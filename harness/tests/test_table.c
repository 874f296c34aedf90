#include "records.h"
#include "store/table.h"

static void print(DflashTable *table, bool coloured, char *text, size_t capacity) {
  FILE *file = tmpfile();
  assert_non_null(file);
  dflash_table_print(table, file, 1, coloured);
  rewind(file);
  text[fread(text, 1, capacity - 1, file)] = '\0';
  fclose(file);
}

static void columns_are_aligned(void **state) {
  (void)state;
  DflashTable table = {.columns = "lrl"};
  dflash_table_head(&table, "a,number,rest");
  static const char *const cells[] = {"long name", "7", "x", "\xc3\xa4", "1234567", "", "b", "", "y"};
  for (size_t i = 0; i < 9; i++) dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%s", cells[i]);
  char text[500];
  print(&table, false, text, sizeof text);
  assert_string_equal(text, " a           number  rest\n"
                            " long name        7  x\n"
                            " \xc3\xa4          1234567\n"
                            " b                   y\n");
}

static void cells_are_cleaned_and_coloured(void **state) {
  (void)state;
  DflashTable table = {.columns = "ll"};
  dflash_table_cell(&table, DFLASH_COLOUR_BAD, "\033[2Jbad");
  dflash_table_cell(&table, DFLASH_COLOUR_NONE, "a\nb");
  char text[500];
  print(&table, true, text, sizeof text);
  assert_string_equal(text, " \033[31m?[2Jbad\033[0m  a?b\n");
  dflash_table_cell(&table, DFLASH_COLOUR_BAD, "bad");
  dflash_table_cell(&table, DFLASH_COLOUR_NONE, "x");
  print(&table, false, text, sizeof text);
  assert_string_equal(text, " bad  x\n");
}

static void unfinished_rows_are_not_printed(void **state) {
  (void)state;
  DflashTable table = {.columns = "ll"};
  dflash_table_cell(&table, DFLASH_COLOUR_NONE, "only one");
  char text[100];
  print(&table, false, text, sizeof text);
  assert_string_equal(text, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns_are_aligned),
      cmocka_unit_test(cells_are_cleaned_and_coloured),
      cmocka_unit_test(unfinished_rows_are_not_printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
