#include "backends/faulty/faulty.h"

const Fault faults_attention[] = {{.defect = {.id = NULL}}};
