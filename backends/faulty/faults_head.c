#include "backends/faulty/faulty.h"

const Fault faults_head[] = {{.defect = {.id = NULL}}};
