#include "backends/faulty/faulty.h"

const Fault faults_context[] = {{.defect = {.id = NULL}}};
