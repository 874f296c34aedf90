#include "backends/faulty/faulty.h"

const Fault faults_memory[] = {{.defect = {.id = NULL}}};
