#include "backends/faulty/faulty.h"

const Fault faults_select[] = {{.defect = {.id = NULL}}};
