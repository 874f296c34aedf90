/* A committed golden on the backend over the emulated driver. */
#ifndef DFLASH_CUDA_TESTS_SCENE_H
#define DFLASH_CUDA_TESTS_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emulated/emulated_driver.h"
#include "load/golden.h"
#include "vtable.h"

/* The driver that the backend finds, which must be the emulated one. */
extern EmulatedDriver *driver;

typedef struct Scene {
  DflashGolden *golden;
  DflashCase c; /* the file's first case */
  const DflashGeometry *g;
} Scene;

void scene_open(Scene *scene, const char *file);
void scene_close(Scene *scene);

/* Fails the test, with its message, unless the status is DFLASH_OK. */
void must(DflashStatus status, const DflashError *error);

DflashModelDesc scene_desc(const Scene *scene);
DflashModel *scene_model(const Scene *scene, const char *device);
DflashSequence *scene_sequence(DflashModel *model, uint32_t flags, int64_t reserve_rows);

/* Taps of `rows` positions, the same for equal positions; free() releases. */
float *scene_taps(const Scene *scene, int64_t position, int64_t rows);
DflashStatus scene_push(const Scene *scene, DflashSequence *s, int64_t position, int64_t rows, DflashError *error);

/* What a block answers. */
typedef struct Answer {
  int32_t chosen[64], plain[64];
  float *logits;
} Answer;
/* A block of all rows, at an anchor. answer->logits: free() releases. */
DflashStatus scene_block(const Scene *scene, DflashSequence *s, int64_t anchor, uint32_t flags, Answer *answer,
                         DflashError *error);
void answers_equal(const Scene *scene, const Answer *a, const Answer *b);

/* K, then V, of `rows` positions of a layer; free() releases. */
float *scene_rows(const Scene *scene, DflashSequence *s, int64_t layer, int64_t pos, int64_t rows);
/* Both hold the same positions, and the same values of those that both keep. */
void contexts_equal(const Scene *scene, DflashSequence *a, DflashSequence *b);

/* Nothing of the driver is open. */
void nothing_open(void);

#endif
