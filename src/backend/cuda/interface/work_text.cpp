#include "backend/cuda/interface/work_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"

namespace dpt::cuda {

std::string describe(const Matmul& m) {
  return fmt::format("[{}, {}] = [{}, {}] x [{}, {}]{} in {}, {}", m.m, m.n, m.m, m.k, m.k, m.n,
                     text_of(m.epilogue), name_of(m.in), name_of(m.out));
}

std::string describe(const DnnConvolution& c) {
  constexpr std::string_view passes[] = {"convolution", "input gradient of a convolution",
                                         "weight gradient of a convolution"};
  return fmt::format("{} of {} with {}{}{} in {}, {}", passes[static_cast<size_t>(c.pass)],
                     c.x.str(), c.w.str(), c.bias ? ", bias" : "", c.relu ? ", relu" : "",
                     name_of(c.in), name_of(c.out));
}

std::string describe(const DnnNorm& n) {
  return fmt::format("{}{} of {}{}{} in {}", n.pass == DnnPass::forward ? "" : "gradients of ",
                     name_of(n.kind), n.x.str(), n.add ? ", add" : "", n.relu ? ", relu" : "",
                     name_of(n.type));
}

std::string describe(const DnnPool& p) {
  return fmt::format("{}{} of {} to {} in {}", p.pass == DnnPass::forward ? "" : "gradient of ",
                     name_of(p.kind), p.x.str(), p.y.str(), name_of(p.type));
}

std::string describe(const DnnAttention& a) {
  return fmt::format("{}attention of {} by {} places, {} heads of {} columns in {}",
                     a.pass == DnnPass::forward ? "" : "gradient of ", counted(a.samples, "sample"),
                     a.positions, a.heads, a.columns, name_of(a.type));
}

// Note [all fields]: names for all fields of a struct, so that a new one is no longer forgotten
// than until the next build.
namespace {

std::string all_of(const Window& window) {
  const auto& [kernel, stride, dilation, before, behind] = window;
  return fmt::format("{} {} {} {} {}", fmt::join(kernel, "x"), fmt::join(stride, "x"),
                     fmt::join(dilation, "x"), fmt::join(before, "x"), fmt::join(behind, "x"));
}

}  // namespace

std::string all_of(const DnnConvolution& c) {
  const auto& [pass, x, w, y, window, groups, in, out, tf32, bias, relu] = c;
  return fmt::format("convolution {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(pass),
                     x.str(), w.str(), y.str(), all_of(window), groups, name_of(in), name_of(out),
                     tf32, bias, relu);
}

std::string all_of(const DnnNorm& n) {
  const auto& [kind, pass, x, type, eps, add, relu, sum] = n;
  return fmt::format("{} {} {} {} {:a} {} {} {}", name_of(kind), static_cast<int>(pass), x.str(),
                     name_of(type), eps, add, relu, sum);
}

std::string all_of(const DnnPool& p) {
  const auto& [kind, pass, x, y, window, type] = p;
  return fmt::format("{} {} {} {} {} {}", name_of(kind), static_cast<int>(pass), x.str(), y.str(),
                     all_of(window), name_of(type));
}

std::string all_of(const DnnAttention& a) {
  const auto& [pass, samples, positions, heads, columns, causal, type, workspace] = a;
  return fmt::format("attention {} {} {} {} {} {} {} {}", static_cast<int>(pass), samples,
                     positions, heads, columns, causal, name_of(type), workspace);
}

}  // namespace dpt::cuda
