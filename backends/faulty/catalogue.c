/* All lists of faults as one catalogue. */
#include "backends/faulty/executor.h"

DFLASH_BACKEND_EXPORT const DflashCatalogue *dflash_catalogue(void);

enum { ROOM = 2048 };

/* Made anew at each call, the same each time. */
const DflashCatalogue *dflash_catalogue(void) {
  static DflashDefect defects[ROOM];
  static const DflashDefect *list[ROOM];
  static DflashCatalogue catalogue = {.struct_size = sizeof catalogue, .defects = list};
  const Fault *fault;
  catalogue.count = 0;
  while (catalogue.count < ROOM && (fault = fault_at(catalogue.count)) != NULL) {
    DflashDefect *defect = &defects[catalogue.count];
    *defect = fault->defect;
    defect->struct_size = sizeof *defect;
    list[catalogue.count++] = defect;
  }
  return &catalogue;
}
