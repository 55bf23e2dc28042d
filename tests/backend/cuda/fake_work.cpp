#include "backend/cuda/fake_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/half.h"
#include "graph/formulas/activation.h"
#include "graph/operator.h"

namespace dpt::cuda {
namespace {

double get(DType t, const std::byte* p, int64_t i) {
  if (t == DType::f32) return static_cast<double>(reinterpret_cast<const float*>(p)[i]);
  const uint16_t bits = reinterpret_cast<const uint16_t*>(p)[i];
  return static_cast<double>(t == DType::bf16 ? from_bf16(bits) : from_f16(bits));
}
void set(DType t, std::byte* p, int64_t i, double x) {
  const auto f = static_cast<float>(x);
  if (t == DType::f32)
    reinterpret_cast<float*>(p)[i] = f;
  else
    reinterpret_cast<uint16_t*>(p)[i] = t == DType::bf16 ? to_bf16(f) : to_f16(f);
}
Touched touched(const std::byte* p, DType t, int64_t n, bool writes) {
  return {p, static_cast<size_t>(n) * size_of(t), writes};
}

class FakeMatmul : public FakeWork {
 public:
  FakeMatmul(const Matmul& m, int& live) : FakeWork(live), m_(m) {}
  std::string text() const override {
    return fmt::format("matmul [{}, {}]{} [{}, {}]{} {} to {}{}", m_.m, m_.k,
                       m_.transpose_a ? "T" : "", m_.k, m_.n, m_.transpose_b ? "T" : "",
                       name_of(m_.in), name_of(m_.out), text_of(m_.epilogue));
  }
  std::vector<Touched> touches(std::span<std::byte* const> t) const override {
    std::vector<Touched> out = {touched(t[0], m_.in, m_.m * m_.k, false),
                                touched(t[1], m_.in, m_.k * m_.n, false),
                                touched(t[2], m_.out, m_.m * m_.n, true)};
    const bool sums = m_.epilogue == Epilogue::sums_of_a;
    if (has_vector(m_.epilogue)) out.push_back(touched(t[3], m_.out, sums ? m_.m : m_.n, sums));
    if (has_mask(m_.epilogue))
      out.push_back(touched(t.back(), DType::u8, m_.m * m_.mask_row(), makes_mask(m_.epilogue)));
    return out;
  }
  std::function<void()> bound(std::span<std::byte* const> t) const override {
    return [m = m_, t = std::vector(t.begin(), t.end())] { run(m, t); };
  }

 private:
  static void run(const Matmul& m, const std::vector<std::byte*>& t) {
    std::vector<double> a(static_cast<size_t>(m.m * m.k)), b(static_cast<size_t>(m.k * m.n));
    for (int64_t i = 0; i < m.m; ++i)
      for (int64_t k = 0; k < m.k; ++k)
        a[static_cast<size_t>(i * m.k + k)] =
            get(m.in, t[0], m.transpose_a ? k * m.m + i : i * m.k + k);
    for (int64_t k = 0; k < m.k; ++k)
      for (int64_t j = 0; j < m.n; ++j)
        b[static_cast<size_t>(k * m.n + j)] =
            get(m.in, t[1], m.transpose_b ? j * m.k + k : k * m.n + j);
    const bool bias = has_bias(m.epilogue), relu = has_relu(m.epilogue);
    // Bits of its own making: set where the gradient is 0, the last one of a row first.
    std::byte* const mask = t.back();
    const auto masked = [&](int64_t i, int64_t j) -> std::pair<std::byte&, std::byte> {
      const int64_t bit = m.mask_row() * 8 - 1 - j;
      return {mask[i * m.mask_row() + bit / 8], std::byte{1} << (bit % 8)};
    };
    if (makes_mask(m.epilogue)) std::fill_n(mask, m.m * m.mask_row(), std::byte{0});
    std::vector<double> row(static_cast<size_t>(m.n));
    for (int64_t i = 0; i < m.m; ++i) {
      for (int64_t j = 0; j < m.n; ++j)
        row[static_cast<size_t>(j)] = bias ? get(m.out, t[3], j) : 0;
      double sum = 0;
      for (int64_t k = 0; k < m.k; ++k) {
        const double x = a[static_cast<size_t>(i * m.k + k)];
        sum += x;
        for (int64_t j = 0; j < m.n; ++j)
          row[static_cast<size_t>(j)] += x * b[static_cast<size_t>(k * m.n + j)];
      }
      for (int64_t j = 0; j < m.n; ++j) {
        const double y = row[static_cast<size_t>(j)];
        bool zero = relu && y <= 0;
        if (has_mask(m.epilogue)) {
          const auto [byte, bit] = masked(i, j);
          if (makes_mask(m.epilogue) && zero) byte |= bit;
          if (m.epilogue == Epilogue::relu_gradient) zero = (byte & bit) != std::byte{0};
        }
        set(m.out, t[2], i * m.n + j, zero ? 0 : y);
      }
      if (m.epilogue == Epilogue::sums_of_a) set(m.out, t[3], i, sum);
    }
  }
  Matmul m_;
};

// By the operators' plain loops on tensors in f32.
struct ConvolutionLoops {
  DnnConvolution c;

  // Of tensor i, in the order of the description.
  Shape shape(size_t i) const {
    if (i == 3) return {c.w[0]};
    switch (c.pass) {
      case ConvolutionPass::forward:
        return i == 0 ? c.x : i == 1 ? c.w : c.y;
      case ConvolutionPass::input_gradient:
        return i == 0 ? c.y : i == 1 ? c.w : c.x;
      case ConvolutionPass::weight_gradient:
        break;
    }
    return i == 0 ? c.x : i == 1 ? c.y : c.w;
  }
  DType type(size_t i) const { return i < 2 ? c.in : c.out; }
  bool weight() const { return c.pass == ConvolutionPass::weight_gradient; }
  std::string_view name() const {
    if (weight()) return "convolution_weight_gradient";
    return c.pass == ConvolutionPass::forward ? "convolution" : "convolution_transpose";
  }

  void operator()(const std::vector<std::byte*>& t) const {
    std::vector<std::vector<float>> values;
    for (size_t i = 0; i < t.size(); ++i) {
      std::vector<float>& v = values.emplace_back(static_cast<size_t>(shape(i).elements()));
      for (size_t e = 0; i != 2 && e < v.size(); ++e)
        v[e] = static_cast<float>(get(type(i), t[i], static_cast<int64_t>(e)));
    }
    const auto view = [&](size_t i) {
      const Layout layout = i == 3 ? Layout::plain : Layout::channels_last;
      return TensorView{{DType::f32, shape(i), layout},
                        reinterpret_cast<std::byte*>(values[i].data())};
    };
    std::vector<TensorView> in = {view(weight() ? 1 : 0), view(weight() ? 0 : 1)};
    if (c.bias) in.push_back(view(3));
    const std::vector<TensorView> out = {view(2)};
    op(name()).reference({in, out, nullptr}, Convolution{.window = c.window, .groups = c.groups});
    if (c.relu)
      for (float& v : values[2]) v = formula::relu(v);
    for (size_t e = 0; e < values[2].size(); ++e)
      set(c.out, t[2], static_cast<int64_t>(e), static_cast<double>(values[2][e]));
  }
};

class FakeConvolution : public FakeWork {
 public:
  FakeConvolution(const DnnConvolution& c, int& live) : FakeWork(live), loops_{c} {}
  std::string text() const override {
    const DnnConvolution& c = loops_.c;
    return fmt::format("{} {} {} {} {} to {}{}{}", loops_.name(), c.x.str(), c.w.str(), c.y.str(),
                       name_of(c.in), name_of(c.out), c.bias ? " + bias" : "",
                       c.relu ? ", relu" : "");
  }
  std::vector<Touched> touches(std::span<std::byte* const> t) const override {
    std::vector<Touched> out;
    for (size_t i = 0; i < t.size(); ++i)
      out.push_back(touched(t[i], loops_.type(i), loops_.shape(i).elements(), i == 2));
    return out;
  }
  std::function<void()> bound(std::span<std::byte* const> t) const override {
    return [loops = loops_, t = std::vector(t.begin(), t.end())] { loops(t); };
  }

 private:
  ConvolutionLoops loops_;
};

// By its formulas, sums in double.
class NormLoops {
 public:
  NormLoops(const DnnNorm& n, const std::vector<std::byte*>& t) : n_(n), t_(t) {
    for (int64_t i = 0; i < n.x.elements(); ++i) rows_[row(i)].push_back(i);
  }

  void forward() {
    for (const auto& [r, all] : rows_) {
      const auto count = static_cast<double>(all.size());
      double sum = 0, squares = 0;
      for (int64_t i : all) sum += image(0, i);
      const double mean = sum / count;
      for (int64_t i : all) squares += (image(0, i) - mean) * (image(0, i) - mean);
      set(DType::f32, t_[4], r, mean);
      set(DType::f32, t_[5], r, 1 / std::sqrt(squares / count + n_.eps));
      for (int64_t i : all) {
        double y = (image(0, i) - mean) * f32(5, r) * f32(1, channel(i)) + f32(2, channel(i));
        if (n_.add) y = store(3, i, y) + image(6, i);
        store(3, i, n_.relu && y <= 0 ? 0 : y);
      }
    }
  }

  void backward() {
    const auto channels = static_cast<size_t>(n_.x[1]);
    std::vector<double> dw(channels), db(channels);
    for (const auto& [r, all] : rows_) {
      const auto count = static_cast<double>(all.size());
      const auto h = [&, row = r](int64_t i) { return (image(1, i) - f32(3, row)) * f32(4, row); };
      double sum = 0, along_h = 0;
      for (int64_t i : all) {
        const double d = dy(i), g = d * f32(2, channel(i));
        if (n_.add) store(9, i, d);
        sum += g, along_h += g * h(i);
        db[static_cast<size_t>(channel(i))] += d;
        dw[static_cast<size_t>(channel(i))] += d * h(i);
      }
      for (int64_t i : all)
        store(5, i, f32(4, r) * (dy(i) * f32(2, channel(i)) - (sum + h(i) * along_h) / count));
    }
    for (size_t c = 0; c < channels; ++c) {
      set(DType::f32, t_[6], static_cast<int64_t>(c), dw[c]);
      set(DType::f32, t_[7], static_cast<int64_t>(c), db[c]);
    }
  }

 private:
  int64_t channel(int64_t i) const { return i % n_.x[1]; }
  int64_t row(int64_t i) const {
    const int64_t sample = i / n_.x.tail(1).elements();
    if (n_.kind == NormKind::batch) return channel(i);
    return n_.kind == NormKind::layer ? sample : sample * n_.x[1] + channel(i);
  }
  double image(size_t tensor, int64_t i) const { return get(n_.type, t_[tensor], i); }
  double f32(size_t tensor, int64_t i) const { return get(DType::f32, t_[tensor], i); }
  double store(size_t tensor, int64_t i, double x) {
    set(n_.type, t_[tensor], i, x);
    return image(tensor, i);
  }
  double dy(int64_t i) const {
    if (n_.relu && !(image(8, i) > 0)) return 0;
    if (!n_.sum) return image(0, i);
    std::array<std::byte, 8> rounded{};
    set(n_.type, rounded.data(), 0, image(0, i) + image(t_.size() - 1, i));
    return get(n_.type, rounded.data(), 0);
  }

  const DnnNorm& n_;
  const std::vector<std::byte*>& t_;
  std::map<int64_t, std::vector<int64_t>> rows_;  // what has one mean, in the order of memory
};

class FakeNorm : public FakeWork {
 public:
  FakeNorm(const DnnNorm& n, int& live) : FakeWork(live), n_(n) {}
  std::string text() const override {
    const bool forward = n_.pass == DnnPass::forward;
    return fmt::format("{}{} {} {}{}{}{}", name_of(n_.kind), forward ? "" : " back", n_.x.str(),
                       name_of(n_.type), n_.add ? (forward ? " + r" : ", dr") : "",
                       n_.relu ? ", relu" : "", n_.sum ? ", two dy" : "");
  }
  std::vector<Touched> touches(std::span<std::byte* const> t) const override {
    std::vector<Touched> out;
    const bool forward = n_.pass == DnnPass::forward;
    for (size_t i = 0; i < t.size(); ++i) {
      const bool weights = forward ? i == 1 || i == 2 : i == 2 || i == 6 || i == 7;
      const Shape shape = n_.image(i) ? n_.x : weights ? n_.weights() : n_.moments();
      out.push_back(
          touched(t[i], n_.image(i) ? n_.type : DType::f32, shape.elements(), n_.made(i)));
    }
    return out;
  }
  std::function<void()> bound(std::span<std::byte* const> t) const override {
    require(t.size() == n_.tensors(), "a norm has the tensors of its description");
    return [n = n_, t = std::vector(t.begin(), t.end())] {
      NormLoops loops(n, t);
      n.pass == DnnPass::forward ? loops.forward() : loops.backward();
    };
  }

 private:
  DnnNorm n_;
};

}  // namespace

std::unique_ptr<FakeWork> fake_work(const Matmul& m, int& live) {
  return std::make_unique<FakeMatmul>(m, live);
}
std::unique_ptr<FakeWork> fake_work(const DnnConvolution& c, int& live) {
  return std::make_unique<FakeConvolution>(c, live);
}
std::unique_ptr<FakeWork> fake_work(const DnnNorm& n, int& live) {
  return std::make_unique<FakeNorm>(n, live);
}

}  // namespace dpt::cuda
