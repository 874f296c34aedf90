/* Graphs: everything that a block does as one launch, made once for each of its sizes. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "sequence.h"

static bool fits(const CudaGraph *graph, const DflashBlockCall *call) {
  return graph->exec && graph->rows == call->rows && graph->n_draft == call->n_draft &&
         graph->head_width == call->head_width && graph->flags == call->flags;
}

static void close_graph(DflashSequence *s, CudaGraph *graph) {
  if (graph->exec) (void)s->model->device.driver.graph_exec_destroy(graph->exec);
  free(graph->spans);
  if (s->last == graph) s->last = NULL;
  *graph = (CudaGraph){0};
}

void cuda_graphs_close(DflashSequence *s) {
  for (int i = 0; i < CUDA_GRAPHS; i++) close_graph(s, &s->graphs[i]);
}

/* What a graph holds between its two events: the host's inputs, the kernels, the answers. */
static DflashStatus queue(DflashSequence *s, const DflashBlockCall *call, CudaRun *run) {
  CudaDevice *device = &s->model->device;
  const CudaBlock *b = &s->block;
  const int64_t rows = cuda_fast_input_rows(s->model, call->rows);
  const size_t inputs = (size_t)(b->h - b->inputs + (uint64_t)(rows * s->model->geometry.hidden) * 4);
  const size_t words = (size_t)cuda_result_words(call->n_draft, s->model->geometry.selector_top);
  char *host = s->inputs.at;
  DflashStatus status = CUDA_CALL(device, "the copy of a block's inputs", run->error, copy_to_device, b->inputs, host,
                                  inputs, device->stream);
  if (status) return status;
  cuda_run_block(run);
  if (run->status) return run->status;
  status = CUDA_CALL(device, "the copy of a block's answers", run->error, copy_to_host, host + s->host_result,
                     b->result, words * 4, device->stream);
  if (!status && run->stamped)
    status = CUDA_CALL(device, "the copy of a block's stamps", run->error, copy_to_host, host + s->host_stamps,
                       b->stamps, (run->stamp_count + 1) * sizeof(uint64_t), device->stream);
  return status;
}

static DflashStatus queue_timed(DflashSequence *s, const DflashBlockCall *call, CudaRun *run) {
  CudaDevice *device = &s->model->device;
  DflashStatus status = CUDA_CALL(device, "the block's first event", run->error, event_record_node, s->begin,
                                  device->stream, CU_EVENT_RECORD_EXTERNAL);
  if (!status) status = queue(s, call, run);
  if (!status)
    status = CUDA_CALL(device, "the block's last event", run->error, event_record_node, s->end, device->stream,
                       CU_EVENT_RECORD_EXTERNAL);
  return status;
}

/* The capture is ended whatever happened in it: else the stream stays in it. */
static DflashStatus capture(DflashSequence *s, const DflashBlockCall *call, CudaRun *run, CUgraph *graph) {
  CudaDevice *device = &s->model->device;
  *graph = NULL;
  DflashStatus status =
      CUDA_CALL(device, "beginning a graph", run->error, capture_begin, device->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (status) return status;
  status = queue_timed(s, call, run);
  if (!status) return CUDA_CALL(device, "ending a graph", run->error, capture_end, device->stream, graph);
  (void)device->driver.capture_end(device->stream, graph);
  return status;
}

static bool keep_spans(CudaGraph *graph, const CudaRun *run) {
  graph->spans = dflash_alloc(run->span_count + 1, sizeof *graph->spans);
  if (!graph->spans) return false;
  memcpy(graph->spans, run->spans, run->span_count * sizeof *graph->spans);
  graph->span_count = run->span_count;
  graph->stamp_count = run->stamp_count;
  return true;
}

static DflashStatus make(DflashSequence *s, const DflashBlockCall *call, CudaGraph *graph, DflashError *error) {
  CudaDevice *device = &s->model->device;
  CUgraph captured;
  CudaRun run = {.model = s->model,
                 .block = &s->block,
                 .rows = call->rows,
                 .n_draft = call->n_draft,
                 .head_width = call->head_width,
                 .error = error,
                 .stamped = (call->flags & DFLASH_BLOCK_STAMP) != 0,
                 .spans = s->spans};
  *graph =
      (CudaGraph){.rows = call->rows, .n_draft = call->n_draft, .head_width = call->head_width, .flags = call->flags};
  DflashStatus status = capture(s, call, &run, &captured);
  if (!status && !keep_spans(graph, &run))
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for spans");
  if (!status) status = CUDA_CALL(device, "making a graph", error, graph_instantiate, &graph->exec, captured, 0);
  if (captured) (void)device->driver.graph_destroy(captured);
  if (status) close_graph(s, graph);
  return status;
}

/* The place for another one: empty, or longest unused. */
static CudaGraph *place(DflashSequence *s) {
  CudaGraph *oldest = &s->graphs[0];
  for (int i = 0; i < CUDA_GRAPHS; i++) {
    if (!s->graphs[i].exec) return &s->graphs[i];
    if (s->graphs[i].used < oldest->used) oldest = &s->graphs[i];
  }
  return oldest;
}

DflashStatus cuda_graph_get(DflashSequence *s, const DflashBlockCall *call, CudaGraph **graph, DflashError *error) {
  for (int i = 0; i < CUDA_GRAPHS; i++)
    if (fits(&s->graphs[i], call)) {
      *graph = &s->graphs[i];
      return DFLASH_OK;
    }
  *graph = place(s);
  close_graph(s, *graph);
  return make(s, call, *graph, error);
}
