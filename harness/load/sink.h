/* A file driver for writing that never fails towards HDF5.
 *
 * HDF5 1.10 cannot close a file whose metadata it failed to write: it crashes, then or at exit. So this driver
 * keeps the first error for its owner, drops every later write, and lets HDF5 finish in order.
 */
#ifndef DFLASH_LOAD_SINK_H
#define DFLASH_LOAD_SINK_H

#include "load/h5.h"

typedef struct DflashSink {
  int reason; /* errno of the first write that failed; 0: all went well */
} DflashSink;

/* The access list gets the driver; it and every file opened by it refer to the sink until they are closed. */
bool dflash_sink_install(hid_t access_list, DflashSink *sink);

#endif
