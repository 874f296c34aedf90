#include "backends/faulty/faulty.h"

const Fault faults_lawful[] = {{.defect = {.id = NULL}}};
