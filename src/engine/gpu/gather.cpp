#include "engine/gpu/gather.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/fail.h"
#include "graph/operator.h"

namespace dpt {

GpuGather::Crossing GpuGather::crossing_of(const Program& p) {
  Crossing out{.begin = p.arena[0].kept};
  std::set<ValueId> made;  // values that the loss computes
  const auto in_memory = [&](ValueId v) {
    return p.location[static_cast<size_t>(v)].arena == Arena::activations;
  };
  const auto add = [&](std::vector<ValueId>& to, ValueId v) {
    if (in_memory(v) && std::ranges::find(to, v) == to.end()) to.push_back(v);
  };
  for (const Instruction& i : p.loss) {
    const GraphNode& n = p.graph.nodes[i.node];
    for (const ValueId v : n.in)
      if (!made.contains(v)) add(out.to_loss, v);
    made.insert(n.out.begin(), n.out.end());
  }
  for (const Instruction& i : p.backward)
    for (const ValueId v : p.graph.nodes[i.node].in)
      if (made.contains(v)) add(out.from_loss, v);
  std::set<ValueId> touched = made;
  touched.insert(out.to_loss.begin(), out.to_loss.end());
  for (const ValueId v : touched) {
    if (!in_memory(v)) continue;
    const size_t at = p.location[static_cast<size_t>(v)].offset;
    out.begin = std::min(out.begin, at);
    out.end = std::max(out.end, at + p.graph[v].desc.bytes());
  }
  out.begin = out.begin / 256 * 256;
  return out;
}

size_t GpuGather::bytes(const Session& s) {
  size_t most = 0;
  for (const auto& [rows, program] : s.model.programs) {
    const Crossing c = crossing_of(program);
    most = std::max(most, cuda::aligned(c.end - c.begin));
  }
  return most * static_cast<size_t>(s.devices.topology.shards - 1);
}

bool GpuGather::here() const { return gpus_.worker() == session_.devices.topology.loss_device; }

GpuGather::GpuGather(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus,
                     GpuExchange& exchange, const GpuBinding::BufferPointers& memory)
    : session_(session), context_(context), gpus_(gpus), exchange_(exchange) {
  for (const auto& [rows, program] : session.model.programs)
    crossings_.emplace(&program, crossing_of(program));
  if (here()) {
    static constexpr Part kLoss[] = {Part::loss};
    const size_t others = static_cast<size_t>(session.devices.topology.shards - 1);
    loss_buffers_ = cuda::DeviceBuffer(context.api, cuda::MemoryKind::device, bytes(session));
    size_t next = 0;
    for (int shard = 0; shard < session.devices.topology.shards; ++shard) {
      if (shard == gpus.worker()) continue;
      std::byte* const buffer = loss_buffers_.data() + next++ * (loss_buffers_.bytes() / others);
      gpus.publish(shard, buffer);
      for (const auto& [rows, program] : session.model.programs) {
        GpuBinding::BufferPointers its = memory;
        // Only the range that crosses is allocated, so the base address is shifted down by its
        // offset.
        its.activations = {reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(buffer) -
                                                        crossings_.at(&program).begin)};
        loss_.push_back(std::make_unique<GpuBinding>(program, its, context, kLoss));
      }
    }
  }
  gpus.barrier();
  if (!here() && !exchange.by_nccl())
    context.api.reach(session.devices.gpu_of_worker.at(
        static_cast<size_t>(session.devices.topology.loss_device)));
}

void GpuGather::gather(const Micro& micro, const GpuBinding* b) {
  if (exchange_.by_nccl()) return pass(micro, b, true);
  if (b) copy(*b, true);
}

void GpuGather::scatter(const Micro& micro, const GpuBinding* b) {
  if (exchange_.by_nccl()) return pass(micro, b, false);
  if (b) copy(*b, false);
}

// there: copies to the loss's GPU; else copies back.
void GpuGather::pass(const Micro& micro, const GpuBinding* own, bool there) {
  const int loss = session_.devices.topology.loss_device;
  transfers_.clear();
  for (int shard = 0; shard < session_.devices.topology.shards; ++shard) {
    const int64_t rows = micro[static_cast<size_t>(shard)].rows.count();
    if (rows == 0 || shard == loss || (!here() && shard != gpus_.worker())) continue;
    const GpuBinding& b = here() ? of(shard, rows) : *own;
    const Crossing& c = crossing(b);
    for (const ValueId v : there ? c.to_loss : c.from_loss)
      if (const TensorView value = b.view(v); value.desc.bytes() > 0)
        transfers_.push_back(
            {.value = value, .other = here() ? shard : loss, .sends = here() != there});
  }
  exchange_.pass_now(transfers_);
}

// Copies between this GPU's memory and the memory that the loss's GPU published for it.
void GpuGather::copy(const GpuBinding& own, bool there) {
  if (here()) return;
  const Crossing& c = crossing(own);
  std::byte* const buffer = gpus_.published(gpus_.worker());
  for (const ValueId v : there ? c.to_loss : c.from_loss) {
    const TensorView value = own.view(v);
    std::byte* const at = buffer + own.program().location[static_cast<size_t>(v)].offset - c.begin;
    if (value.desc.bytes() > 0)
      context_.stream.copy(there ? at : value.data, there ? value.data : at, value.desc.bytes());
  }
}

GpuBinding& GpuGather::of(int shard, int64_t rows) const {
  const size_t programs = session_.model.programs.size();
  const auto before = static_cast<size_t>(shard - (shard > gpus_.worker() ? 1 : 0));
  for (size_t p = 0; p < programs; ++p) {
    GpuBinding& b = *loss_[before * programs + p];
    if (b.program().rows.shards[0] == rows) return b;
  }
  fail(Fault::failed, "no program for {} samples", rows);
}

const std::byte* GpuGather::loss_of(int shard, int64_t rows) {
  GpuBinding& b = of(shard, rows);
  b.run(Part::loss);
  return b.view(b.program().graph.loss).data;
}

}  // namespace dpt
