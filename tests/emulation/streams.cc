// Streams, events, and graphs that are captured from them.
#include <algorithm>
#include <utility>

#include "tests/emulation/device.h"

namespace octavo::emulation {

void Device::violate(const std::string& what, cudaError_t code) {
  violations.push_back(what);
  if (error == cudaSuccess) error = code;
}

void Device::give(Stream& stream, Operation operation) {
  if (stream.capture != nullptr) {
    stream.capture->operations.push_back(std::move(operation));
    ++stream.num_captured;
    stream.is_joined = false;
    return;
  }
  stream.queue.push_back(std::move(operation));
  if (settings.stream_order == StreamOrder::kAtOnce) run_all(stream);
}

void Device::run_one(Stream& stream) {
  const Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (operation.waits_for != nullptr) run_until(*operation.waits_for, operation.version);
  if (operation.work && error == cudaSuccess) operation.work();
  if (operation.records == nullptr) return;
  operation.records->done = std::max(operation.records->done, operation.version);
  operation.records->time_us = now_us;
}

void Device::run_all(Stream& stream) {
  while (!stream.queue.empty()) run_one(stream);
}

void Device::run_until(Event& event, std::int64_t version) {
  while (event.done < version && event.stream != nullptr && !event.stream->queue.empty())
    run_one(*event.stream);
}

void Device::run_everything() {
  for (const auto& stream : streams) run_all(*stream);
}

cudaError_t Device::refuse_in_capture() {
  cudaError_t code = cudaSuccess;
  for (const auto& capture : captures) {
    const bool concerns_us =
        capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id());
    if (!concerns_us) continue;
    capture->is_broken = true;
    code = cudaErrorStreamCaptureUnsupported;
  }
  return code;
}

Device& device() {
  static Device* const the_device = new Device;  // outlives every owner
  return *the_device;
}

}  // namespace octavo::emulation

using octavo::emulation::call;
using octavo::emulation::Capture;
using octavo::emulation::Device;
using octavo::emulation::device;
using octavo::emulation::Graph;
using octavo::emulation::GraphExecutable;
using octavo::emulation::Operation;

namespace {

template <class T>
bool erase(std::set<std::unique_ptr<T>>& set, T* element) {
  const auto found =
      std::find_if(set.begin(), set.end(), [element](const auto& each) { return each.get() == element; });
  if (found == set.end()) return false;
  set.erase(found);
  return true;
}

// For calls that ask for what a capture only notes down.
cudaError_t refuse_captured(octavo::emulation::Stream& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->is_broken = true;
  return cudaErrorStreamCaptureUnsupported;
}
cudaError_t refuse_captured(octavo::emulation::Event& event) {
  if (event.capture == nullptr) return cudaSuccess;
  event.capture->is_broken = true;
  return cudaErrorCapturedEvent;
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return call([&](Device& self) {
    *stream = self.streams.insert(std::make_unique<octavo::emulation::Stream>()).first->get();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  device().run_all(*stream);
  for (const auto& event : device().events) {
    if (event->stream == stream) event->stream = nullptr;
  }
  return erase(device().streams, stream) ? device().error : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Device& self) {
    const cudaError_t refused = refuse_captured(*stream);
    if (refused == cudaSuccess) self.run_all(*stream);
    return refused;
  });
}
// Whoever asks again and again has to see an end: each time one piece of work is done.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&](Device& self) {
    const cudaError_t refused = refuse_captured(*stream);
    if (refused != cudaSuccess || stream->queue.empty()) return refused;
    self.run_one(*stream);
    return cudaErrorNotReady;
  });
}
// In a capture only what the capture itself records can be waited for; a stream that waits for it joins it.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&](Device& self) {
    if (stream->capture != event->capture) {
      if (stream->capture != nullptr) {
        stream->capture->is_broken = true;
        return cudaErrorStreamCaptureIsolation;
      }
      stream->capture = event->capture;
      stream->num_captured = 0;
      stream->is_joined = false;
    }
    if (stream->capture == nullptr) {
      self.give(*stream, {.work = {}, .waits_for = event, .version = event->version});
      return cudaSuccess;
    }
    octavo::emulation::Stream* const other = event->stream;
    if (other != nullptr && other != stream && other->capture == stream->capture &&
        other->num_captured == event->num_captured) {
      other->is_joined = true;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Device& self) {
    *event = self.events.insert(std::make_unique<octavo::emulation::Event>()).first->get();
    (*event)->tells_time = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(device().mutex);
  device().run_everything();  // nobody may name it any more
  return erase(device().events, event) ? device().error : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Device& self) {
    event->capture = stream->capture;
    event->stream = stream;
    event->num_captured = stream->num_captured;
    if (stream->capture != nullptr) return cudaSuccess;
    ++event->version;
    self.give(*stream, {.work = {}, .records = event, .version = event->version});
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&](Device& self) {
    const cudaError_t refused = refuse_captured(*event);
    if (refused == cudaSuccess) self.run_until(*event, event->version);
    return refused;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call([&](Device&) {
    if (!begin->tells_time || !end->tells_time) return cudaErrorInvalidResourceHandle;
    for (octavo::emulation::Event* const event : {begin, end}) {
      const cudaError_t refused = refuse_captured(*event);
      if (refused != cudaSuccess) return refused;
      if (event->version == 0) return cudaErrorInvalidResourceHandle;
      if (event->done < event->version) return cudaErrorNotReady;
    }
    *milliseconds = static_cast<float>((end->time_us - begin->time_us) / 1000.0);
    return cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&](Device& self) {
    const cudaError_t refused = refuse_captured(*event);
    if (refused != cudaSuccess || event->done >= event->version) return refused;
    if (event->stream != nullptr && !event->stream->queue.empty()) self.run_one(*event->stream);
    return cudaErrorNotReady;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&](Device& self) {
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    stream->capture->mode = mode;
    stream->capture->thread = std::this_thread::get_id();
    stream->num_captured = 0;
    self.captures.insert(stream->capture);
    return cudaSuccess;
  });
}
// False: for some stream nobody waited. `capture` by value: the last other owner may be one of the streams.
static bool end_capture(Device& self, std::shared_ptr<Capture> capture) {
  bool is_joined = true;
  for (const auto& each : self.streams) {
    if (each->capture != capture) continue;
    is_joined = is_joined && (each.get() == capture->origin || each->is_joined);
    each->capture = nullptr;
    each->is_joined = true;
  }
  for (const auto& each : self.events) {
    if (each->capture == capture) each->capture = nullptr;
  }
  self.captures.erase(capture);
  return is_joined;
}
// The stream works again whatever was wrong in between; of a device that has failed memory can be freed.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const cudaError_t ended = call([&](Device& self) {
    const auto capture = stream->capture;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->origin != stream) return cudaErrorStreamCaptureUnmatched;
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    const bool is_joined = end_capture(self, capture);
    if (capture->is_broken) return cudaErrorStreamCaptureInvalidated;
    if (!is_joined) return cudaErrorStreamCaptureUnjoined;
    *graph = self.graphs.insert(std::make_unique<Graph>(Graph{capture->operations})).first->get();
    ++self.num_captures;
    return cudaSuccess;
  });
  const std::lock_guard lock(device().mutex);
  if (device().error != cudaSuccess && stream->capture != nullptr) end_capture(device(), stream->capture);
  return ended;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call([&](Device& self) {
    *executable =
        self.executables.insert(std::make_unique<GraphExecutable>(GraphExecutable{graph->operations}))
            .first->get();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  return call([&](Device& self) {
    const cudaError_t refused = refuse_captured(*stream);
    if (refused == cudaSuccess) self.give(*stream, {.work = {}});
    return refused;
  });
}
// A graph within a graph is more than is needed here.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&](Device& self) {
    const cudaError_t refused = refuse_captured(*stream);
    if (refused != cudaSuccess) return refused;
    ++self.num_graph_launches;
    for (const Operation& operation : executable->operations) self.give(*stream, operation);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard lock(device().mutex);
  return erase(device().graphs, graph) ? device().error : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::lock_guard lock(device().mutex);
  return erase(device().executables, executable) ? device().error : cudaErrorInvalidResourceHandle;
}
