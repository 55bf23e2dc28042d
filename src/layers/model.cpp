#include "layers/model.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/count.h"
#include "base/fail.h"
#include "graph/attrs.h"
#include "layers/initialisation.h"
#include "layers/parameter_pattern.h"

namespace dpt {
namespace {

// Runs f and reports its Error{spec} to `d` at `where`, with `more` appended.
template <class F>
void complaining(Diagnostics& d, Span where, F f, const std::string& more = "") {
  try {
    f();
  } catch (const Error& e) {
    if (e.fault() != Fault::spec) throw;
    d.error(where, e.what() + more);
  }
}

// The values that `from` may name in one list of the model, and those of the enclosing lists.
struct Scope {
  const Scope* outer = nullptr;
  std::map<std::string, ValueId, std::less<>> values{};

  ValueId find(std::string_view name) const {
    if (const auto v = values.find(name); v != values.end()) return v->second;
    return outer ? outer->find(name) : kNoValue;
  }
  void add_names(std::vector<std::string_view>& names) const {
    for (const auto& [name, value] : values) names.push_back(name);
    if (outer) outer->add_names(names);
  }
};

class ModelLowering {
 public:
  ModelLowering(GraphBuilder& g, const std::vector<int>& placement, Diagnostics& d,
                std::vector<LoweredLayer>* layers)
      : g_(g), placement_(placement), d_(d), layers_(layers) {}

  // Lowers a list with input x and returns its output; kNoValue after an error.
  ValueId sequence(const std::vector<ModelItem>& items, const std::string& prefix, ValueId x,
                   const Scope& outer, bool freeze) {
    Scope scope{&outer};
    for (size_t i = 0; i < items.size() && x != kNoValue; ++i) {
      const ModelItem& item = items[i];
      const std::string name = item.name.empty() ? std::to_string(i) : item.name;
      const std::vector<ValueId> in = inputs(items, i, x, scope);
      if (in.empty()) return kNoValue;
      const int around = range_;
      begin_range(items, i);
      x = lower(item, prefix.empty() ? name : fmt::format("{}.{}", prefix, name), in, scope,
                freeze || item.freeze);
      g_.range(range_ = around);
      if (!item.name.empty() && !scope.values.emplace(item.name, x).second) {
        d_.error(item.where,
                 fmt::format("'{}' is already the name of an earlier layer", item.name));
        return kNoValue;
      }
    }
    return x;
  }

 private:
  // Begins a recomputation range if the entry has `checkpoint`. Consecutive layers share a range; a
  // block or residual has its own.
  void begin_range(const std::vector<ModelItem>& items, size_t at) {
    const auto is_layer = [&](size_t i) {
      return items[i].checkpoint && items[i].kind == ModelItem::Kind::layer;
    };
    if (range_ != 0 || !items[at].checkpoint) return;
    const bool goes_on = at > 0 && is_layer(at) && is_layer(at - 1);
    g_.range(range_ = goes_on ? ranges_ : ++ranges_);
  }

  // The inputs of items[at]; empty after an error.
  std::vector<ValueId> inputs(const std::vector<ModelItem>& items, size_t at, ValueId x,
                              const Scope& scope) {
    const ModelItem& item = items[at];
    std::vector<ValueId> in;
    for (const Located<std::string>& from : item.from) {
      if (const ValueId v = scope.find(from.value); v != kNoValue) {
        in.push_back(v);
        continue;
      }
      if (std::any_of(items.begin() + static_cast<ptrdiff_t>(at), items.end(),
                      [&](const ModelItem& later) { return later.name == from.value; })) {
        d_.error(from.where, fmt::format("'{}' does not come before this layer", from.value));
      } else {
        std::vector<std::string_view> known;
        scope.add_names(known);
        d_.unknown("layer", from, " in 'from'", known);
      }
      return {};
    }
    if (in.empty()) in.push_back(x);
    const bool several = item.kind == ModelItem::Kind::layer &&
                         static_cast<const LayerType*>(item.layer.what)->several_inputs;
    if (in.size() > 1 && !several) {
      d_.error(item.from[1].where,
               fmt::format("{} takes one value; add and concat take several", title(item)));
      return {};
    }
    return in;
  }

  static std::string title(const ModelItem& item) {
    switch (item.kind) {
      case ModelItem::Kind::layer:
        return fmt::format("'{}'", item.layer.what->name);
      case ModelItem::Kind::sequence:
        return "a block";
      case ModelItem::Kind::residual:
        return "a residual";
    }
    return "";
  }

  ValueId lower(const ModelItem& item, const std::string& name, const std::vector<ValueId>& in,
                const Scope& scope, bool freeze) {
    place(item);
    switch (item.kind) {
      case ModelItem::Kind::layer:
        return layer(item, name, in, freeze);
      case ModelItem::Kind::sequence: {
        uses_.push_back(item.where);
        const ValueId y = sequence(item.body, name, in[0], scope, freeze);
        uses_.pop_back();
        return y;
      }
      case ModelItem::Kind::residual:
        return residual(item, name, in[0], scope, freeze);
    }
    return kNoValue;
  }

  // Sets the device of a unit. Layers in a residual are on the device of the residual.
  void place(const ModelItem& item) {
    if (placement_.empty()) {
      if (item.device) device_ = static_cast<int>(*item.device);
      if (item.kind == ModelItem::Kind::layer) g_.device(device_);
    } else if (item.kind != ModelItem::Kind::sequence && residuals_ == 0) {
      g_.device(placement_.at(unit_++));
    }
  }

  ValueId layer(const ModelItem& item, const std::string& name, const std::vector<ValueId>& in,
                bool freeze) {
    const Span where = item.layer.where;
    g_.enter(name, where, !freeze);
    const size_t before = g_.graph().parameters.size();
    ValueId y = kNoValue;
    complaining(
        d_, where,
        [&] {
          y = static_cast<const LayerType*>(item.layer.what)->build(item.layer.settings, g_, in);
        },
        use_of(name));
    if (y == kNoValue) return kNoValue;
    const std::vector<ValueId>& all = g_.graph().parameters;
    for (size_t i = before; i < all.size(); ++i)
      if (const std::string& full = g_.graph()[all[i]].name; !parameters_.insert(full).second) {
        d_.error(
            where,
            fmt::format("two parameters are named '{}'; give the layers different names", full));
        return kNoValue;
      }
    initialise(item, name, before);
    if (layers_) layers_->push_back({.item = &item, .name = name, .in = in, .out = y});
    return y;
  }

  // Sets the initializations of the current layer's parameters, which start at index `before`.
  void initialise(const ModelItem& item, const std::string& name, size_t before) {
    Graph& graph = g_.graph();
    for (const auto& given : item.init) {
      const Choice& init = given.second;
      if (!init) continue;  // reported
      const auto apply = [&] {
        bool used = false;
        for (size_t i = before; i < graph.parameters.size(); ++i) {
          Value& v = graph.values[static_cast<size_t>(graph.parameters[i])];
          if (item.init_of(std::string_view(v.name).substr(g_.scope().size() + 1)) != &init)
            continue;
          const auto& type = *static_cast<const InitialisationType*>(init.what);
          v.reinitialise(type.make(init.settings, v.desc.shape));
          used = true;
        }
        if (!used)
          fail(Fault::spec, "this '{}' has no {} for '{}' to initialize", item.layer.what->name,
               given.first, init.what->name);
      };
      complaining(d_, init.where, apply, use_of(name));
    }
  }

  // A layer in a block appears once in the spec but may be used several times; errors say which
  // use.
  std::string use_of(const std::string& name) const {
    return uses_.empty() ? ""
                         : fmt::format("; this use is layer '{}', created on line {}", name,
                                       uses_.front().line);
  }

  // y = body(x) + shortcut(x).
  ValueId residual(const ModelItem& item, const std::string& name, ValueId x, const Scope& scope,
                   bool freeze) {
    ++residuals_;
    const ValueId body = sequence(item.body, name + ".body", x, scope, freeze);
    if (body == kNoValue) return kNoValue;
    const ValueId shortcut = sequence(item.shortcut, name + ".shortcut", x, scope, freeze);
    --residuals_;
    if (shortcut == kNoValue) return kNoValue;
    if (g_.desc(body) != g_.desc(shortcut)) {
      d_.error(
          item.where,
          fmt::format("the body of this residual outputs {}, but its {} {}", g_.shape(body).str(),
                      item.has_shortcut ? "shortcut outputs" : "input, which is added to it, is",
                      g_.shape(shortcut).str()));
      return kNoValue;
    }
    g_.enter(name, item.where, !freeze);
    return g_.apply("add", {body, shortcut});
  }

  GraphBuilder& g_;
  const std::vector<int>& placement_;
  size_t unit_ = 0;
  int device_ = 0;     // of the previous entry; entries without `device` keep it
  int residuals_ = 0;  // how many residuals enclose the current entry
  int range_ = 0;      // recomputation range of the current entry; 0: none
  int ranges_ = 0;     // number of ranges so far
  Diagnostics& d_;
  std::vector<LoweredLayer>* layers_;
  std::set<std::string> parameters_;
  std::vector<Span> uses_;  // enclosing uses of blocks and repeats, outermost first
};

const LossType& type_of(const Choice& loss) { return *static_cast<const LossType*>(loss.what); }

// Throws if class targets can exceed the number of scores, which the loss and the accuracy would
// index.
void check_classes(const LossType& type, int64_t scores, int64_t classes) {
  if (classes > 0 && scores < classes)
    fail(Fault::spec, "{}: the model outputs {} per sample, but the data has {}", type.name,
         counted(scores, "score"), counted(classes, "class", "classes"));
}

// Reports embeddings with fewer rows than the data has tokens.
void check_tokens(const Graph& graph, int64_t tokens, Diagnostics& d) {
  for (const GraphNode& n : graph.nodes) {
    if (!n.op->is(Trait::indexes_rows) || n.in[0] != graph.input) continue;
    const int64_t rows = graph[n.in[1]].desc.shape[0];
    if (rows < tokens)
      d.error(n.where, fmt::format("embedding: num_embeddings is {}, but the data has {} different "
                                   "tokens; write num_embeddings: {}",
                                   rows, tokens, tokens));
  }
}

// Applies `freeze`, and reports patterns of the spec that match no parameter.
void apply_patterns(const Spec& spec, Graph& graph, Diagnostics& d) {
  if (spec.freeze.empty() && spec.no_decay.empty() && spec.parameter_groups.empty()) return;
  const NamedParameters parameters(spec, graph);
  check_patterns(spec, parameters, d);
  const std::vector<bool> frozen = parameters.marked(spec.freeze);
  for (size_t i = 0; i < frozen.size(); ++i)
    if (frozen[i]) graph.values[static_cast<size_t>(graph.parameters[i])].trainable = false;
}

// Where a model without trainable parameters is reported.
Span place_of_untrained(const Spec& spec) {
  if (!spec.freeze.empty()) return spec.freeze.front().where;
  return spec.model.empty() ? spec.where : spec.model.front().where;
}

// The line to name if a pass cannot be run.
Span line_of(const Pass& pass, const Graph& graph, const Spec& spec) {
  if (pass.where == nullptr) return spec.loss.where;
  const Span line = pass.where(graph);
  return line.line > 0 ? line : place_of_untrained(spec);
}

void lower_loss(const Choice& loss, const ModelQuery& q, GraphBuilder& g) {
  Graph& graph = g.graph();
  const LossType& type = type_of(loss);
  g.enter("loss", loss.where);
  g.stage(graph.stages() - 1);
  graph.target = g.input("target", q.target, Role::target);
  graph.divisor = g.input("divisor", {DType::f32, {1}}, Role::divisor);
  const bool by_class = type.classes && q.target.dtype == DType::i32;

  // Ignored targets make the number of counted positions uneven between shards.
  const Divisor divisor = type.divisor(loss.settings);
  if (divisor == Divisor::targets || (divisor == Divisor::positions && by_class && q.ignores)) {
    g.part(Part::prologue);
    graph.target_weight = type.target_weight(loss.settings, g, graph.target);
  }
  g.part(Part::loss);
  graph.loss = type.build(loss.settings, g, graph.output, graph.target, graph.divisor);
  if (type.class_dim == nullptr || q.target.dtype != DType::i32) return;
  const Shape y = graph[graph.output].desc.shape;
  const int dim = type.class_dim(loss.settings, y);
  check_classes(type, y[dim], q.classes);
  // Only evaluation reports accuracy.
  if (q.differentiate || !by_class) return;
  CountCorrect count{.dim = dim};
  if (type.ignore_index) count.ignore_index = type.ignore_index(loss.settings);
  graph.correct = g.apply("count_correct", {graph.output, graph.target}, count);
}

}  // namespace

Graph build_graph(const Spec& spec, const ModelQuery& query, Diagnostics& d,
                  std::vector<LoweredLayer>* layers, std::vector<PassChange>* changes) {
  Graph graph;
  GraphBuilder g(graph, query.mode);
  g.part(Part::forward);
  complaining(d, spec.at("data.batch_size"), [&] { graph.input = g.input("input", query.input); });
  if (graph.input == kNoValue) return graph;
  const Scope root{.outer = nullptr, .values = {{"input", graph.input}}};
  graph.output = ModelLowering(g, query.placement, d, layers)
                     .sequence(spec.model, "", graph.input, root, false);
  if (graph.output == kNoValue) return graph;
  apply_patterns(spec, graph, d);
  if (!query.loss) return graph;
  check_tokens(graph, query.tokens, d);
  complaining(d, spec.loss.where, [&] { lower_loss(spec.loss, query, g); });
  const PassSettings settings{.precision = query.precision,
                              .copies = query.copies,
                              .fuse = query.fuse,
                              .differentiate = query.differentiate,
                              .recompute_stages = query.recompute_stages,
                              .own_moments = query.own_moments,
                              .kernels = query.kernels};
  for (const Pass& pass : query.passes) {
    if (!d.ok()) break;
    try {
      run_pass(pass, graph, settings, changes);
    } catch (const Error& e) {
      if (e.fault() != Fault::spec) throw;
      d.error(line_of(pass, graph, spec), e.what());
    }
  }
  graph.values.shrink_to_fit();
  graph.nodes.shrink_to_fit();
  return graph;
}

namespace {

void add_units(const std::vector<ModelItem>& items, const std::string& prefix,
               std::vector<std::string>& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string name = prefix + (items[i].name.empty() ? std::to_string(i) : items[i].name);
    if (items[i].kind == ModelItem::Kind::sequence)
      add_units(items[i].body, name + ".", out);
    else
      out.push_back(name);
  }
}

}  // namespace

std::vector<std::string> units_of(const std::vector<ModelItem>& model) {
  std::vector<std::string> out;
  add_units(model, "", out);
  return out;
}

int devices_of(const std::vector<ModelItem>& model) {
  int out = 1;
  for (const ModelItem& item : model) {
    if (item.device) out = std::max(out, static_cast<int>(*item.device) + 1);
    out = std::max({out, devices_of(item.body), devices_of(item.shortcut)});
  }
  return out;
}

Divisor divisor_of(const Spec& spec, const Graph& graph) {
  if (graph.target_weight != kNoValue) return Divisor::targets;
  const Divisor divisor = type_of(spec.loss).divisor(spec.loss.settings);
  return divisor == Divisor::targets ? Divisor::positions : divisor;
}

bool zero_divisor_ignores_all(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const GraphNode& n) {
    if (n.out[0] != graph.target_weight) return false;
    return n.in.size() == 1 ||
           std::ranges::all_of(graph[n.in[1]].origin->content,
                               [](double weight) { return static_cast<float>(weight) > 0; });
  });
}

int class_dim_of(const Spec& spec, const Shape& output) {
  const LossType& type = type_of(spec.loss);
  return type.class_dim ? type.class_dim(spec.loss.settings, output) : 1;
}

int64_t terms_per_sample(Divisor divisor, const Shape& output, int class_dim) {
  switch (divisor) {
    case Divisor::positions:
      return output.with(class_dim, 1).tail(1).elements();
    case Divisor::elements:
      return output.tail(1).elements();
    case Divisor::half_elements:
      return output.tail(1).elements() / 2;
    case Divisor::one:
    case Divisor::samples:
    case Divisor::targets:
      break;
  }
  return 1;
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (ValueId v : graph.parameters) count += graph[v].desc.shape.elements();
  return count;
}

}  // namespace dpt
