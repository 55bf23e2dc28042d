// The GPU implementations of elementwise operators.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

template <class F>
std::unique_ptr<Kernel> activation(const KernelQuery& q) {
  ActivationOf<F> f;
  formula::each_parameter<F>([&, values = settings<F>(q), to = f.p](const auto& p) mutable {
    *to++ = static_cast<float>(values.*p.number);
  });
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (q.in.size() == 1)
      return enqueue([f, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream, Map<ActivationOf<F>, T>{f, at<T>(a.in[0]), at<T>(a.out[0])}, n);
      });
    return enqueue([f, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Map2<ActivationOf<F>, T>{f, at<T>(a.in[0]), at<T>(a.in[1]), at<T>(a.out[0])},
             n);
    });
  });
}

template <class... F>
void add_activations(std::vector<KernelType>& out, formula::FormulaList<F...>) {
  const auto add = [&]<class A>(A) {
    out.push_back(own(A::kRow.name, not_one_type, activation<A>));
    out.push_back(own(A::kRow.gradient, not_one_type, activation<A>));
  };
  (add(F{}), ...);
}

std::unique_ptr<Kernel> round_to(const KernelQuery& q) {
  const RoundToHalf f{settings<Cast>(q).dtype == DType::bf16};
  return enqueue([f, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream, Map<RoundToHalf, float>{f, at<float>(a.in[0]), at<float>(a.out[0])}, n);
  });
}

std::string refuses_cast(const KernelQuery& q) {
  const auto number = [](DType t) { return t == DType::f32 || is_half(t); };
  const DType from = q.in[0].dtype, to = q.out[0].dtype;
  return number(from) && number(to) && from != to
             ? ""
             : fmt::format("it cannot produce {} from {}", name_of(to), name_of(from));
}

std::unique_ptr<Kernel> cast(const KernelQuery& q) {
  return with_number(q.in[0].dtype, [&]<class From>(From) {
    return with_number(q.out[0].dtype, [&]<class To>(To) -> std::unique_ptr<Kernel> {
      if constexpr (std::is_same_v<From, To>)
        return nullptr;  // refused
      else
        return enqueue([n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
          launch(c.stream, Convert<From, To>{at<From>(a.in[0]), at<To>(a.out[0])}, n);
        });
    });
  });
}

// Adds the inputs in order. Each sum is rounded to the type of the values.
std::unique_ptr<Kernel> add(const KernelQuery& q) {
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      T* const y = at<T>(a.out[0]);
      launch(c.stream, Map2<Sum2, T>{{}, at<T>(a.in[0]), at<T>(a.in[1]), y}, n);
      for (const TensorView& x : a.in.subspan(2))
        launch(c.stream, Map2<Sum2, T>{{}, y, at<T>(x), y}, n);
    });
  });
}

std::unique_ptr<Kernel> multiply(const KernelQuery& q) {
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Map2<Product2, T>{{}, at<T>(a.in[0]), at<T>(a.in[1]), at<T>(a.out[0])}, n);
    });
  });
}

std::unique_ptr<Kernel> glu(const KernelQuery& q) {
  const TensorDesc& y = is_gradient(q) ? q.in[0] : q.out[0];
  const int64_t half = y.shape.tail(settings<Glu>(q).dim).elements(), n = count(y);
  return with_number(y.dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (is_gradient(q))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream, GateGradient<T>{at<T>(a.in[0]), at<T>(a.in[1]), at<T>(a.out[0]), half}, n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Gate<T>{at<T>(a.in[0]), at<T>(a.out[0]), half}, n);
    });
  });
}

std::string refuses_scale(const KernelQuery& q) {
  return q.in[0].dtype != q.out[0].dtype || q.in[1].dtype != DType::f32
             ? "it requires an f32 scale and an output of the type of its input"
             : "";
}
std::unique_ptr<Kernel> scale(const KernelQuery& q) {
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, ScaleBy<T>{at<T>(a.in[0]), at<float>(a.in[1]), at<T>(a.out[0])}, n);
    });
  });
}

std::unique_ptr<Kernel> masked(const KernelQuery& q) {
  const auto scale = static_cast<float>(settings<Masked>(q).scale);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    const auto with = [&]<class Mask>(Mask) {
      return enqueue([n = count(q.out[0]), scale](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream, Masks<T, Mask>{at<T>(a.in[0]), at<Mask>(a.in[1]), at<T>(a.out[0]), scale},
               n);
      });
    };
    if (q.in[1].dtype == DType::u8) return with(uint8_t{});
    return with(T{});
  });
}

std::unique_ptr<Kernel> masked_channels(const KernelQuery& q) {
  const auto scale = static_cast<float>(settings<Masked>(q).scale);
  const int64_t together = std::max<int64_t>(1, q.in[0].shape.tail(2).elements());
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             MaskChannels<T, T>{at<T>(a.in[0]), at<T>(a.in[1]), at<T>(a.out[0]), together, scale},
             n);
    });
  });
}

std::unique_ptr<Kernel> drop_channels(const KernelQuery& q) {
  const auto s = settings<Dropout>(q);
  const int64_t width = std::max<int64_t>(1, q.in[0].shape.tail(1).elements());
  const int64_t together = std::max<int64_t>(1, q.in[0].shape.tail(2).elements());
  const float scale = 1 / static_cast<float>(1 - s.p);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             DropChannels<T>{at<T>(a.in[0]), at<T>(a.out[0]), c.state, width, together, s.key,
                             philox::keep_below(s.p), scale},
             n);
    });
  });
}

std::unique_ptr<Kernel> dropout(const KernelQuery& q) {
  const auto s = settings<Dropout>(q);
  if (s.channels) return drop_channels(q);
  const int64_t rows = q.in[0].shape[0], width = count(q.in[0]) / std::max<int64_t>(1, rows);
  const float scale = 1 / static_cast<float>(1 - s.p);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             Drop<T>{at<T>(a.in[0]), at<T>(a.out[0]), c.state, rows, width, s.key,
                     philox::keep_below(s.p), scale},
             rows * Drop<T>::blocks_of(width));
    });
  });
}

// Which slope belongs to an element: see ParametricRelu.
struct Slopes {
  int64_t slopes, together;
  Slopes(const TensorDesc& x, const TensorDesc& w)
      : slopes(count(w)), together(slopes == 1 ? 1 : channels_of(x).inner) {}
};

std::unique_ptr<Kernel> prelu(const KernelQuery& q) {
  const Slopes s(q.in[0], q.in[1]);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([s, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(
          c.stream,
          ParametricRelu<T>{at<T>(a.in[0]), at<T>(a.in[1]), at<T>(a.out[0]), s.slopes, s.together},
          n);
    });
  });
}
std::unique_ptr<Kernel> prelu_gradient(const KernelQuery& q) {
  const Slopes s(q.in[1], q.in[2]);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([s, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             ParametricReluGradient<T>{at<T>(a.in[0]), at<T>(a.in[1]), at<T>(a.in[2]),
                                       at<T>(a.out[0]), s.slopes, s.together},
             n);
    });
  });
}

std::string refuses_weight_gradient(const KernelQuery& q) {
  return q.in[0].dtype != q.in[1].dtype || q.out[0].dtype != DType::f32
             ? "it takes one type and makes f32"
             : "";
}
std::unique_ptr<Kernel> prelu_weight_gradient(const KernelQuery& q) {
  const bool one = count(q.out[0]) == 1;
  const Rows rows =
      one ? Rows{.columns = 1, .inner = 1, .elements = count(q.in[0])} : channels_of(q.in[0]);
  const ColumnPlan plan(count(q.in[0]) / std::max<int64_t>(1, rows.columns), rows.columns);
  DeviceContext::current().reserve(plan.bytes(1));
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      sum_columns<SlopeTerm<T>, float>(c, plan, {rows, at<T>(a.in[0]), at<T>(a.in[1])},
                                       {at<float>(a.out[0])});
    });
  });
}

}  // namespace

std::vector<KernelType> pointwise_rows() {
  std::vector<KernelType> out;
  add_activations(out, formula::Activations{});
  out.push_back(own("dropout", not_one_type, dropout));
  out.push_back(own("dropout_gradient", not_one_type, dropout));
  out.push_back(own("masked", not_one_type, masked));
  out.push_back(own("masked_channels", not_one_type, masked_channels));
  out.push_back(own("add", not_one_type, add));
  out.push_back(own("multiply", not_one_type, multiply));
  out.push_back(own("glu", not_one_type, glu));
  out.push_back(own("glu_gradient", not_one_type, glu));
  out.push_back(own("scale", refuses_scale, scale));
  out.push_back(own("cast", refuses_cast, cast));
  out.push_back(own("round_to", not_f32, round_to));
  out.push_back(own("prelu", not_one_type, prelu));
  out.push_back(own("prelu_gradient", not_one_type, prelu_gradient));
  out.push_back(own("prelu_weight_gradient", refuses_weight_gradient, prelu_weight_gradient));
  return out;
}

}  // namespace dpt::cuda
