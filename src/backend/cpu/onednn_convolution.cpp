// Convolutions and their gradients by oneDNN.
//
// Note [one sample at a time]: oneDNN chooses an algorithm by the batch size, and the order of sums
// depends on the algorithm. So convolutions and their input gradients are computed for one sample
// at a time, and a sample's values do not depend on the batch. For the convolutions of ResNet-50
// this was measured to cost nothing. Weight gradients sum over the samples of a shard and are
// computed for all of them at once.
#include "backend/cpu/kernels.h"
#include "base/units.h"

#if DPT_ONEDNN

#include <algorithm>
#include <unordered_map>

#include "backend/cpu/convolution_roles.h"
#include "backend/cpu/half_kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/scratch.h"
#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/windows.h"

namespace dpt {
namespace {

using dnnl::memory;
using onednn::engine;

// The dimensions of x, w and y of y = convolution(x, w) in oneDNN's form.
struct Shapes {
  memory::dims x, w, y, stride, dilation, before, behind;
  memory::dims w_strides;  // of the weight as it is given

  Shapes(const Shape& from, const TensorDesc& weight, const Shape& to, const Convolution& s) {
    // Sequences have the height 1, only volumes a depth.
    const auto image = [](const Shape& t) {
      memory::dims out{t[0], t[1]};
      for (const int64_t e : of(extents_of(t), t)) out.push_back(e);
      return out;
    };
    x = image(from);
    y = image(to);
    w = image(weight.shape);
    const auto steps = strides_of(Shape(w), weight.layout);
    w_strides.assign(steps.begin(), steps.begin() + std::ssize(w));
    if (s.groups > 1) {
      w[0] /= s.groups;
      w.insert(w.begin(), s.groups);
      w_strides.insert(w_strides.begin(), w[1] * w_strides[0]);
    }
    const Window& k = s.window;
    stride = of(k.stride, from);
    dilation = of({k.dilation[0] - 1, k.dilation[1] - 1, k.dilation[2] - 1}, from);
    before = of(k.before, from);
    behind = of(k.behind, from);
  }

 private:
  static memory::dims of(const Extents& e, const Shape& image) {
    return {e.begin() + (image.rank() == 5 ? 0 : 1), e.end()};
  }
};

using Pass = ConvolutionPass;

memory::desc image(const memory::dims& dims, const TensorDesc& d) {
  const bool last = same_order(d.shape, d.layout, Layout::channels_last);
  using Tag = memory::format_tag;
  const Tag tag = dims.size() == 5 ? (last ? Tag::ndhwc : Tag::ncdhw)
                  : last           ? Tag::nhwc
                                   : Tag::nchw;
  return {dims, onednn::type_of(d), tag};
}

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(const KernelQuery& q, Pass pass)
      : pass_(pass), bias_(q.in.size() > 2), rounding_(rounding(q.rounds)) {
    onednn::use_one_core();
    stream_ = dnnl::stream(engine());
    const ConvolutionRoles roles(q, pass);
    Shapes s(roles.x->shape, *roles.w, roles.y->shape, std::any_cast<const Convolution&>(q.attrs));
    if (pass != Pass::weight_gradient) {
      samples_ = s.x[0];
      s.x[0] = s.y[0] = 1;
    }
    choose(s, image(s.x, *roles.x), image(s.y, *roles.y), onednn::type_of(*roles.w));
    scratch(weight_bytes_ + scratchpad_.get_desc().get_size());
  }

  void run(const KernelArgs& a) override {
    onednn::use_one_core();
    std::byte* const memory_of_thread = scratch(weight_bytes_ + scratchpad_.get_desc().get_size());
    scratchpad_.set_data_handle(memory_of_thread + weight_bytes_);
    const bool gradient = pass_ == Pass::weight_gradient;
    given_weight_.set_data_handle((gradient ? a.out[0] : a.in[1]).data);
    weight_.set_data_handle(weight_bytes_ > 0 ? memory_of_thread : given_weight_.get_data_handle());
    if (weight_bytes_ > 0 && !gradient) reorder_.execute(stream_, given_weight_, weight_);
    if (bias_ && pass_ == Pass::forward) bias_memory_.set_data_handle(a.in[2].data);
    const std::byte* from = a.in[0].data;
    std::byte* to = gradient ? a.in[1].data : a.out[0].data;
    const size_t from_bytes = from_.get_desc().get_size(), to_bytes = to_.get_desc().get_size();
    for (int64_t n = 0; n < samples_; ++n, from += from_bytes, to += to_bytes) {
      from_.set_data_handle(const_cast<std::byte*>(from));
      to_.set_data_handle(to);
      primitive_.execute(stream_, arguments_);
      if (rounding_ != nullptr && !adds_bias()) round(to, to_bytes);
    }
    if (weight_bytes_ > 0 && gradient) reorder_.execute(stream_, weight_, given_weight_);
    stream_.wait();
    if (!adds_bias()) return;
    add_bias(a);
    if (rounding_ != nullptr) round(a.out[0].data, a.out[0].desc.bytes());
  }

 private:
  // type: of the weight. Weight gradients are always f32.
  void choose(const Shapes& s, const memory::desc& x, const memory::desc& y,
              memory::data_type type) {
    const memory::desc w(s.w, type, memory::format_tag::any), given(s.w, type, s.w_strides);
    const memory::desc forward_w(s.w, x.data_type(), memory::format_tag::any);
    const memory::desc b =
        bias_ ? memory::desc({s.y[1]}, type, memory::format_tag::a) : memory::desc();
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x, forward_w,
         pass_ == Pass::forward ? b : memory::desc(), y, s.stride, s.dilation, s.before, s.behind},
        attributes, engine());
    if (pass_ == Pass::forward) {
      keep(dnnl::convolution_forward(forward), forward.weights_desc(), forward.scratchpad_desc(),
           DNNL_ARG_SRC, x, DNNL_ARG_DST, y, DNNL_ARG_WEIGHTS);
      if (bias_) {
        bias_memory_ = memory(b, engine(), nullptr);
        arguments_.emplace(DNNL_ARG_BIAS, bias_memory_);
      }
    } else if (pass_ == Pass::input_gradient) {
      const dnnl::convolution_backward_data::primitive_desc chosen(
          {dnnl::algorithm::convolution_direct, x, w, y, s.stride, s.dilation, s.before, s.behind},
          attributes, engine(), forward);
      keep(dnnl::convolution_backward_data(chosen), chosen.weights_desc(), chosen.scratchpad_desc(),
           DNNL_ARG_DIFF_DST, y, DNNL_ARG_DIFF_SRC, x, DNNL_ARG_WEIGHTS);
    } else {
      const dnnl::convolution_backward_weights::primitive_desc chosen(
          {dnnl::algorithm::convolution_direct, x, w, y, s.stride, s.dilation, s.before, s.behind},
          attributes, engine(), forward);
      keep(dnnl::convolution_backward_weights(chosen), chosen.diff_weights_desc(),
           chosen.scratchpad_desc(), DNNL_ARG_DIFF_DST, y, DNNL_ARG_SRC, x, DNNL_ARG_DIFF_WEIGHTS);
    }
    given_weight_ = memory(given, engine(), nullptr);
    if (given == weight_.get_desc()) return;
    weight_bytes_ = rounded_up(weight_.get_desc().get_size(), kTensorAlignment);
    reorder_ = pass_ == Pass::weight_gradient ? dnnl::reorder(weight_, given_weight_)
                                              : dnnl::reorder(given_weight_, weight_);
  }

  void keep(const dnnl::primitive& chosen, const memory::desc& weight,
            const memory::desc& scratchpad, int from, const memory::desc& from_desc, int to,
            const memory::desc& to_desc, int weight_name) {
    primitive_ = chosen;
    weight_ = memory(weight, engine(), nullptr);
    scratchpad_ = memory(scratchpad, engine(), nullptr);
    from_ = memory(from_desc, engine(), nullptr);
    to_ = memory(to_desc, engine(), nullptr);
    arguments_ = {
        {from, from_}, {to, to_}, {weight_name, weight_}, {DNNL_ARG_SCRATCHPAD, scratchpad_}};
  }

  // oneDNN's input gradient has no bias.
  bool adds_bias() const { return bias_ && pass_ == Pass::input_gradient; }

  void round(std::byte* values, size_t bytes) const {
    float* const x = reinterpret_cast<float*>(values);
    rounding_(x, x, bytes / sizeof(float));
  }

  static void add_bias(const KernelArgs& a) {
    const auto b = a.in[2].as<const float>();
    const auto y = a.out[0].as<float>();
    const TensorDesc& d = a.out[0].desc;
    if (same_order(d.shape, d.layout, Layout::channels_last)) {
      for (size_t i = 0; i < y.size(); i += b.size())
        for (size_t c = 0; c < b.size(); ++c) y[i + c] += b[c];
      return;
    }
    const size_t area = y.size() / static_cast<size_t>(d.shape[0]) / b.size();
    for (size_t plane = 0; plane * area < y.size(); ++plane)
      for (float& v : y.subspan(plane * area, area)) v += b[plane % b.size()];
  }

  Pass pass_;
  bool bias_;
  Rounding rounding_;
  int64_t samples_ = 1;
  size_t weight_bytes_ = 0;  // of the weight in oneDNN's own format; 0: that is the given format
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  dnnl::reorder reorder_;
  // The image that is read and the image that is written; for weight gradients dy and x, both read.
  memory from_, to_, weight_, given_weight_, bias_memory_, scratchpad_;
  std::unordered_map<int, memory> arguments_;
};

template <Pass kPass, Bf16Products kAsked>
std::string refuses(const KernelQuery& q) {
  const auto& s = std::any_cast<const Convolution&>(q.attrs);
  for (size_t i = 0; i < 3; ++i)
    if (s.window.behind[i] < 0 || s.output_padding[i] >= s.window.stride[i])
      return "it requires output_padding to be less than the stride";
  // oneDNN adds strides, padding and windows in 32-bit integers.
  constexpr int64_t kLarge = int64_t{1} << 29;
  for (size_t i = 0; i < 3; ++i)
    if (std::max({covered(s.window, i), s.window.stride[i], s.window.dilation[i],
                  s.window.before[i], s.window.behind[i]}) > kLarge)
      return "its limits on window, stride and padding are exceeded";
  // oneDNN 2.6 copies strided inputs with few channels into a buffer that is too small.
  constexpr int64_t kVector = 16;
  if (kPass == Pass::weight_gradient && s.window.kernel == Extents{1, 1, 1} &&
      s.window.stride != Extents{1, 1, 1} && q.out[0].shape[1] < kVector)
    return "it writes out of bounds for strided inputs with few channels";
  if (kPass == Pass::input_gradient && q.in.size() > 2 && q.in[2].dtype == DType::bf16)
    return "it adds the bias after rounding";
  return onednn::refuses(q, onednn::refuses_bf16(kAsked));
}

template <Pass kPass>
std::unique_ptr<Kernel> prepare(const KernelQuery& q) {
  try {
    return std::make_unique<ConvolutionKernel>(q, kPass);
  } catch (const dnnl::error&) {  // its message names internal objects
    fail(Fault::device,
         "oneDNN cannot compute the convolution of {} to {} on this machine; use other sizes",
         q.in[0].shape.str(), q.out[0].shape.str());
  }
}

template <Pass kPass>
KernelType row(std::string_view op, Bf16Products products) {
  return {.op = op,
          .name = "onednn",
          .refuses = products == Bf16Products::fma ? refuses<kPass, Bf16Products::fma>
                     : products == Bf16Products::instruction
                         ? refuses<kPass, Bf16Products::instruction>
                         : refuses<kPass, Bf16Products::automatic>,
          .prepare = prepare<kPass>,
          .by_sample = true,
          .rounds = kPass != Pass::weight_gradient};
}

}  // namespace

std::vector<KernelType> onednn_convolution_kernels(Bf16Products products) {
  return {row<Pass::forward>("convolution", products),
          row<Pass::input_gradient>("convolution_transpose", products),
          row<Pass::weight_gradient>("convolution_weight_gradient", products)};
}

}  // namespace dpt

#else

namespace dpt {

std::vector<KernelType> onednn_convolution_kernels(Bf16Products) { return {}; }

}  // namespace dpt

#endif
