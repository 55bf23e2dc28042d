#include "engine/cpu/binding.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "backend/cpu/simd/simd.h"
#include "base/error.h"
#include "base/half.h"
#include "base/units.h"
#include "engine/nonfinite_check.h"
#include "engine/value_address.h"
#include "graph/operator.h"
#include "session/later_gradients.h"
#include "session/update_partition.h"

namespace dpt {

Binding::Binding(const Program& program, std::byte* weights, std::byte* gradients,
                 std::byte* activations, std::span<const Part> parts)
    : Binding(program,
              BufferPointers{.weights = weights,
                             .gradients = gradients,
                             .activations = {activations},
                             .scratch = {nullptr}},
              parts, std::vector<int>{0}) {}

Binding::Binding(const Program& program, BufferPointers memory, std::span<const Part> parts,
                 std::span<const int> stages, std::span<const UpdatePiece> share)
    : program_(program),
      memory_(std::move(memory)),
      constants_(program.constant_bytes > 0 ? program.constant_bytes + kTensorAlignment : 0) {
  const auto& rows = program_.rows.shards;
  first_ = static_cast<size_t>(std::ranges::find_if(rows, [](int64_t n) { return n > 0; }) -
                               rows.begin());
  fill_constants();
  std::vector<bool> updated(program_.update.size());
  if (std::ranges::count(parts, Part::update) > 0)
    for (const UpdatePiece& p : share)
      if (p.gradient_instruction >= 0) updated[static_cast<size_t>(p.gradient_instruction)] = true;
  for (Part part : parts)
    bind(part, [&](size_t instruction, int stage) {
      return part == Part::update ? updated[instruction] : std::ranges::count(stages, stage) > 0;
    });
}

void Binding::fill_constants() {
  const Graph& graph = program_.graph;
  for (ValueId v = 0; v < static_cast<ValueId>(graph.values.size()); ++v)
    if (graph[v].role == Role::constant)
      std::ranges::transform(graph[v].origin->content, view(v).as<float>().begin(),
                             [](double x) { return static_cast<float>(x); });
}

template <class Wanted>
void Binding::bind(Part part, Wanted wanted) {
  std::vector<List>& lists = lists_[static_cast<size_t>(part)];
  lists.resize(part == Part::update ? 1 : static_cast<size_t>(program_.graph.stages()));
  const std::vector<Instruction>& all = program_.part(part);
  const ShardGroupRows& rows = program_.rows;
  for (size_t i = 0; i < all.size(); ++i) {
    const int stage = program_.graph.nodes[all[i].node].stage;
    if (!wanted(i, stage)) continue;
    List& list = lists[part == Part::update ? 0 : static_cast<size_t>(stage)];
    const auto add = [&](const Graph& graph, int64_t n, auto view) {
      list.bound.push_back(bound(all[i], graph, n, view));
      list.bound.back().instruction = i;
    };
    if (all[i].sync_point) list.sync_points.push_back(list.bound.size());
    if (!all[i].each_shard) {
      add(program_.graph, rows.total(), [this](ValueId v) { return view(v); });
      continue;
    }
    for (size_t s = 0; s < rows.shards.size(); ++s)
      if (const int64_t n = rows.shards[s]; n > 0)
        add(program_.shard_graphs.at(n), n, [this, s](ValueId v) { return view(v, s); });
  }
}

template <class View>
Binding::Bound Binding::bound(const Instruction& i, const Graph& graph, int64_t rows, View view) {
  const GraphNode& node = graph.nodes[i.node];
  const size_t count = node.in.size() + node.out.size();
  views_.push_back(std::make_unique<TensorView[]>(count));
  const std::span<TensorView> all(views_.back().get(), count);
  for (size_t n = 0; n < count; ++n)
    all[n] = view(n < node.in.size() ? node.in[n] : node.out[n - node.in.size()]);
  kernels_.push_back(prepare(i, query_of(graph, i.node, {{rows}, program_.rows.largest})));
  return {.kernel = kernels_.back().get(),
          .args = {.in = all.first(node.in.size()),
                   .out = all.subspan(node.in.size()),
                   .context = &context},
          .instruction = 0,
          .first_only = i.first_only,
          .copies = is_stage_copy(node),
          .later = memory_.later ? made_aside(i, node, all.subspan(node.in.size())) : nullptr};
}

// For gradient accumulation: redirects the results that are gradients to `memory_.later`, from
// where run_and_add() adds them to the gradients of earlier micro-batches. Null: no result is a
// gradient.
const Binding::Later* Binding::made_aside(const Instruction& i, const GraphNode& node,
                                          std::span<TensorView> out) {
  auto later = std::make_unique<Later>();
  std::byte* at = memory_.later;
  for (size_t r = 0; r < out.size(); ++r) {
    if (program_.location[static_cast<size_t>(node.out[r])].arena != Arena::gradients) continue;
    later->sums.push_back({.made = reinterpret_cast<float*>(at),
                           .to = reinterpret_cast<float*>(out[r].data),
                           .count = static_cast<size_t>(out[r].desc.shape.elements())});
    out[r].data = at;
    at += aligned_to_line(out[r].desc.bytes());
  }
  if (later->sums.empty()) return nullptr;
  if (i.kernel->makes_rows) std::tie(later->rows, later->columns) = rows_and_columns(out[0].desc);
  later_.push_back(std::move(later));
  return later_.back().get();
}

void Binding::run_and_add(const Bound& b) const {
  const auto add = [&](float* to, const float* more, size_t count) {
    const float* const both[] = {to, more};
    simd_kernels().sum_shards_range(to, both, 2, 0, count);
  };
  const auto& [sums, rows, columns] = *b.later;
  if (rows == 0) {
    b.kernel->run(b.args);
    for (const Later::Sum& s : sums) add(s.to, s.made, s.count);
    return;
  }
  const int64_t height = rows_of_tile(columns);
  for (int64_t r = 0; r < rows; r += height) {
    const int64_t count = std::min(height, rows - r);
    b.kernel->run_rows(b.args, r, r + count, false, reinterpret_cast<std::byte*>(sums[0].made));
    add(sums[0].to + r * columns, sums[0].made, static_cast<size_t>(count * columns));
  }
}

std::byte* Binding::pointer(ValueId v) const {
  require(v != kNoValue, "the program has this value");
  const Location& location = program_.location[static_cast<size_t>(v)];
  const auto stage = static_cast<size_t>(location.stage);
  const auto constants = reinterpret_cast<uintptr_t>(constants_.data());
  return address_of(
      location,
      {.weights = memory_.weights,
       .gradients = memory_.gradients,
       .sums = memory_.sums,
       .activations = memory_.activations[stage],
       .scratch = memory_.scratch[stage],
       .constants = reinterpret_cast<std::byte*>(rounded_up(constants, kTensorAlignment))});
}

// Bytes between the slots of consecutive shards; 0 for values that all shards of the group share
// and for values with a row for each sample.
size_t Binding::stride(ValueId v) const {
  switch (program_.location[static_cast<size_t>(v)].arena) {
    case Arena::gradients:
      return memory_.gradient_stride;
    case Arena::sums:
      return memory_.sum_stride;
    case Arena::activations:
    case Arena::scratch:
      return program_.batch_scaling[static_cast<size_t>(v)] == BatchScaling::shard
                 ? program_.shard_stride(v)
                 : 0;
    case Arena::weights:
    case Arena::constants:
    case Arena::none:
      break;
  }
  return 0;
}

TensorView Binding::view(ValueId v) const {
  return {program_.graph[v].desc, pointer(v) + first_ * stride(v)};
}

TensorView Binding::view(ValueId v, size_t shard) const {
  if (program_.shard_graphs.empty()) return view(v);
  const auto& rows = program_.rows.shards;
  TensorView out{program_.shard_graphs.at(rows[shard])[v].desc, pointer(v) + shard * stride(v)};
  if (out.data != nullptr &&
      program_.batch_scaling[static_cast<size_t>(v)] == BatchScaling::sample) {
    const int64_t before = std::accumulate(
        rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shard), int64_t{0});
    out.data += program_.graph[v].desc.bytes() / static_cast<size_t>(program_.rows.total()) *
                static_cast<size_t>(before);
  }
  return out;
}

double Binding::number(ValueId v, size_t shard) const {
  return *reinterpret_cast<const double*>(view(v, shard).data);
}

void Binding::set_divisor(double divisor) const {
  *reinterpret_cast<float*>(pointer(program_.graph.divisor)) = static_cast<float>(divisor);
}

void Binding::set_scale(double scale) const {
  if (program_.graph.scale != kNoValue)
    *reinterpret_cast<float*>(pointer(program_.graph.scale)) = static_cast<float>(scale);
}

std::span<const Binding::Bound> Binding::instructions(const Piece& piece) const {
  const auto& [all, sync_points] = list(piece.part, piece.stage);
  const auto number = static_cast<size_t>(piece.piece);
  const size_t begin = number == 0 ? 0 : sync_points.at(number - 1) + 1;
  const size_t end = number < sync_points.size() ? sync_points[number] : all.size();
  const std::span<const Bound> out = std::span(all).subspan(begin, end - begin);
  if (piece.range.is_whole()) return out;
  const auto from = [&](size_t instruction) {
    return std::ranges::lower_bound(out, instruction, {}, &Bound::instruction);
  };
  return {from(piece.range.begin), from(piece.range.end)};
}

Binding::SyncPoint Binding::sync_point(const Piece& piece) const {
  const List& of = list(piece.part, piece.stage);
  const Bound& b = of.bound[of.sync_points.at(static_cast<size_t>(piece.piece))];
  const Instruction& i = program_.part(piece.part)[b.instruction];
  const ValueId from = program_.graph.nodes[i.node].in[0];
  return {program_.location[static_cast<size_t>(from)].offset, b.args.out[0].as<double>()};
}

int64_t Binding::run_until_not_finite(const Piece& piece) {
  for (const Bound& b : instructions(piece)) {
    run(b);
    if (!std::ranges::all_of(b.args.out, all_finite)) return static_cast<int64_t>(b.instruction);
  }
  return -1;
}

}  // namespace dpt
