#include "backend/cuda/interface/work_text.h"

#include <fmt/format.h>

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
  return fmt::format("{}attention of {} places by {} heads of {} columns in {}",
                     a.pass == DnnPass::forward ? "" : "gradient of ", a.places, a.heads, a.columns,
                     name_of(a.type));
}

}  // namespace dpt::cuda
