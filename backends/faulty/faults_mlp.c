#include "backends/faulty/faulty.h"

const Fault faults_mlp[] = {{.defect = {.id = NULL}}};
