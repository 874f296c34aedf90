#include "backends/faulty/faulty.h"

const Fault faults_time[] = {{.defect = {.id = NULL}}};
