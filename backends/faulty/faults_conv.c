#include "backends/faulty/faulty.h"

const Fault faults_conv[] = {{.defect = {.id = NULL}}};
