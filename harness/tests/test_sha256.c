#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void known_answers(void **state) {
  (void)state;
  static const char *const vectors[][2] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
  };
  for (size_t i = 0; i < 2; i++) {
    char hex[65];
    DflashSha256 *hash = dflash_sha256_open();
    dflash_sha256_update(hash, vectors[i][0], strlen(vectors[i][0]));
    dflash_sha256_close(hash, hex);
    assert_string_equal(hex, vectors[i][1]);
  }
}

static void pieces_equal_the_whole(void **state) {
  (void)state;
  char whole[65], pieces[65];
  static const char text[] = "every piece counts, and so does their order";
  DflashSha256 *hash = dflash_sha256_open();
  dflash_sha256_update(hash, text, sizeof text);
  dflash_sha256_close(hash, whole);
  hash = dflash_sha256_open();
  for (size_t i = 0; i < sizeof text; i++) dflash_sha256_update(hash, text + i, 1);
  dflash_sha256_update(hash, NULL, 0);
  dflash_sha256_close(hash, pieces);
  assert_string_equal(whole, pieces);
}

static void a_null_handle_gives_no_digest(void **state) {
  (void)state;
  char hex[65] = "x";
  dflash_sha256_close(NULL, hex);
  assert_string_equal(hex, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_answers),
      cmocka_unit_test(pieces_equal_the_whole),
      cmocka_unit_test(a_null_handle_gives_no_digest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
