#include "backends/faulty/faulty.h"

const Fault faults_storage[] = {{.defect = {.id = NULL}}};
