#include "gate.h"

enum { SKIPPED = 77 };

void gate_need_device(void) {
  Program p = program("verify " GATE_FILE("tiny-f32.h5") " -q --backend vulkan --backend-path " DFLASH_BACKEND_FOLDER
                                                         " --option validation=on --stage attn.norm --allow-missing");
  if (p.status == 0) {
    program_close(&p);
    return;
  }
  fprintf(stderr, "%s%s", p.out, p.err);
  exit(p.status == SKIPPED && !getenv("DFLASH_REQUIRE_VULKAN") ? SKIPPED : EXIT_FAILURE);
}

void gate_make(const char *words) {
  Program p = program("golden make -q %s", words);
  expect_status(&p, 0);
  program_close(&p);
}
