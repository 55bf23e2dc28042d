// What cuDNN computes that is an operator of dptrain: by the operator's plain loops.
#include <any>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/fake_work.h"
#include "base/half.h"
#include "graph/operator.h"
#include "graph/windows.h"

namespace dpt::cuda {
namespace {

// A tensor of the description: what it is, and its position among the operator's inputs or results.
struct Role {
  TensorDesc desc;
  bool made;
};

class OperatorWork : public FakeWork {
 public:
  // roles: of the tensors as they come; those of inputs and of results as the operator has them.
  OperatorWork(std::string text, std::string_view name, std::any attrs, std::vector<Role> roles,
               int& live)
      : FakeWork(live),
        text_(std::move(text)),
        name_(name),
        attrs_(std::move(attrs)),
        roles_(std::move(roles)) {}

  std::string text() const override { return text_; }
  std::vector<Touched> touches(std::span<std::byte* const> t) const override {
    std::vector<Touched> out;
    for (size_t i = 0; i < t.size(); ++i)
      out.push_back({t[i], roles_[i].desc.bytes(), roles_[i].made});
    return out;
  }
  std::function<void()> bound(std::span<std::byte* const> t) const override {
    require(t.size() == roles_.size(), "a graph of cuDNN has the tensors of its description");
    return [name = name_, attrs = attrs_, roles = roles_, t = std::vector(t.begin(), t.end())] {
      run(name, attrs, roles, t);
    };
  }

 private:
  static void run(std::string_view name, const std::any& attrs, const std::vector<Role>& roles,
                  const std::vector<std::byte*>& t) {
    std::vector<std::vector<std::byte>> wide(t.size());
    std::vector<TensorView> in, out;
    for (size_t i = 0; i < t.size(); ++i) {
      const TensorDesc& desc = roles[i].desc;
      TensorView view{desc, t[i]};
      if (is_half(desc.dtype)) {
        view.desc.dtype = DType::f32;
        wide[i].resize(view.desc.bytes());
        view.data = wide[i].data();
        if (!roles[i].made) to_f32(desc, t[i], wide[i]);
      }
      (roles[i].made ? out : in).push_back(view);
    }
    op(name).reference({in, out, nullptr}, attrs);
    for (size_t i = 0; i < t.size(); ++i)
      if (roles[i].made && is_half(roles[i].desc.dtype)) from_f32(roles[i].desc, wide[i], t[i]);
  }
  static void to_f32(const TensorDesc& d, const std::byte* from, std::vector<std::byte>& to) {
    const auto* half = reinterpret_cast<const uint16_t*>(from);
    auto* f32 = reinterpret_cast<float*>(to.data());
    for (int64_t i = 0; i < d.shape.elements(); ++i)
      f32[i] = d.dtype == DType::bf16 ? from_bf16(half[i]) : from_f16(half[i]);
  }
  static void from_f32(const TensorDesc& d, const std::vector<std::byte>& from, std::byte* to) {
    const auto* f32 = reinterpret_cast<const float*>(from.data());
    auto* half = reinterpret_cast<uint16_t*>(to);
    for (int64_t i = 0; i < d.shape.elements(); ++i)
      half[i] = d.dtype == DType::bf16 ? to_bf16(f32[i]) : to_f16(f32[i]);
  }

  std::string text_;
  std::string_view name_;
  std::any attrs_;
  std::vector<Role> roles_;
};

}  // namespace

std::unique_ptr<FakeWork> fake_work(const DnnPool& p, int& live) {
  const bool back = p.pass == DnnPass::backward, max = p.kind == PoolKind::max;
  const TensorDesc x{p.type, p.x, Layout::channels_last}, y{p.type, p.y, Layout::channels_last};
  std::vector<Role> roles = {{back ? y : x, false}, {back ? x : y, true}};
  if (max) roles.push_back({{DType::u8, p.y, Layout::channels_last}, !back});
  Pool attrs{.window = p.window, .count_include_pad = p.kind == PoolKind::mean_with_padding};
  if (back) attrs.extents = extents_of(p.x);
  const std::string_view names[2][2] = {{"avg_pool", "avg_pool_gradient"},
                                        {"max_pool_bytes", "max_pool_bytes_gradient"}};
  return std::make_unique<OperatorWork>(
      fmt::format("{}{} {} {} {}", name_of(p.kind), back ? " back" : "", p.x.str(), p.y.str(),
                  name_of(p.type)),
      names[max][back], attrs, std::move(roles), live);
}

std::unique_ptr<FakeWork> fake_work(const DnnAttention& a, int& live) {
  const int64_t e = a.heads * a.columns;
  const TensorDesc y{a.type, {a.samples, a.positions, e}},
      qkv{a.type, {a.samples, a.positions, 3 * e}},
      sums{DType::f32, {a.samples, a.heads, a.positions}};
  const bool back = a.pass == DnnPass::backward;
  const std::vector<Role> forward = {{qkv, false}, {y, true}, {sums, true}};
  const std::vector<Role> backward = {
      {y, false}, {qkv, false}, {y, false}, {sums, false}, {qkv, true}};
  return std::make_unique<OperatorWork>(
      fmt::format("attention{} [{}, {}, {}, {}] {}{}", back ? " back" : "", a.samples, a.positions,
                  a.heads, a.columns, name_of(a.type), a.causal ? ", causal" : ""),
      back ? "attention_gradient" : "attention", Attention{a.heads, a.causal},
      back ? backward : forward, live);
}

}  // namespace dpt::cuda
