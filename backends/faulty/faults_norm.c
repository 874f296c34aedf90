#include "backends/faulty/faulty.h"

const Fault faults_norm[] = {{.defect = {.id = NULL}}};
