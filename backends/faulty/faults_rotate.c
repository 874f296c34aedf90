#include "backends/faulty/faulty.h"

const Fault faults_rotate[] = {{.defect = {.id = NULL}}};
