// A GPU worker alone on a fake GPU, for tests of the classes that enqueue a plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/fake_api.h"
#include "data/folder.h"
#include "engine/gpu/launch_queue.h"
#include "engine/gpu/update.h"
#include "engine/gpu/worker.h"
#include "train/run_memory.h"
#include "train/run_spec.h"

namespace dpt {

struct OneGpu {
  std::unique_ptr<const Session> session;
  RunMemory memory;
  Team team;
  Buffers buffers;  // zeroed
  GpuTeam gpus;
  const GpuShare& share;
  cuda::FakeApi api;
  std::unique_ptr<cuda::Stream> stream;
  cuda::DeviceBuffer state;
  cuda::DeviceContext context;
  GpuWorker worker;
  LaunchQueue launch_queue;
  GpuUpdate update;

  explicit OneGpu(const std::string& yaml, const std::vector<std::string>& how = {})
      : session(session_on_gpu(yaml, how)),
        memory(*session),
        team(memory.team()),
        buffers(memory.buffers()),
        gpus(team, 0, 1, {.open = {}, .shared = memory.gpus()}),
        share(session->shares.gpus[0]),
        stream(api.make_stream()),
        state(api, cuda::MemoryKind::device, sizeof(cuda::StepState)),
        context(api, *stream, reinterpret_cast<cuda::StepState*>(state.data())),
        worker{.session = *session,
               .buffers = buffers,
               .gpus = gpus,
               .shard = 0,
               .share = share,
               .context = context,
               .stages = StagesOfDevice(session->model.graph, 0),
               .wait = [this] { stream->synchronise(); }},
        launch_queue(context, 0, session->parameter_groups.groups.size(),
                     [](cuda::Event& event) { event.wait(); }),
        update(*session, 0, share, context, launch_queue) {}

 private:
  static std::unique_ptr<const Session> session_on_gpu(const std::string& yaml,
                                                       std::vector<std::string> how) {
    how.insert(how.begin(), "device=cuda");
    const Folder folder;
    std::vector<std::unique_ptr<SourceFile>> files;
    Diagnostics d;
    Spec spec = load_spec(folder.write("t.yaml", yaml), how, registries(), files, d);
    auto out = make_session(std::move(spec), {.gpus = cuda::GpuSurvey{.count = 1}}, d);
    REQUIRE_MESSAGE(out, d.render());
    return out;
  }
};

}  // namespace dpt
