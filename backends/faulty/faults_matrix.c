#include "backends/faulty/faulty.h"

const Fault faults_matrix[] = {{.defect = {.id = NULL}}};
