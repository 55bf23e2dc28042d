// linear: a fully connected layer on the last dimension, [N, ..., I] -> [N, ..., out_features].
#include "base/fail.h"
#include "formats/python_call.h"
#include "layers/kaiming.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Linear {
  static constexpr Usage kUsage{"torch.nn.Linear",
                                "- linear: 200\n"
                                "- linear: {out_features: 200, bias: false}"};

  int64_t out_features = 0;
  bool bias = true;

  static KeyTable<Linear> keys() {
    return KeyTable<Linear>()
        .required("out_features", &Linear::out_features, "number of output features", kSize)
        .optional("bias", &Linear::bias, "whether a learned bias is added");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    if (in.shape.rank() < 2)
      fail(Fault::spec, "linear takes [N, ..., features], not {}: put {} before it?",
           in.shape.str(), in.dtype == DType::f32 ? "`reshape: [1]`" : "an embedding");
    if (in.dtype != DType::f32)
      fail(Fault::spec, "linear takes real numbers (f32), not {}{}: put an embedding before it?",
           name_of(in.dtype), in.shape.str());
    const int64_t features = in.shape.back();
    const auto fan_in = static_cast<double>(features);
    std::vector<ValueId> inputs = {
        x, g.parameter("weight", {out_features, features}, weight_init(fan_in))};
    if (bias) inputs.push_back(g.parameter("bias", {out_features}, bias_init(fan_in)));
    return g.apply("linear", inputs);
  }

  std::string torch(const Shape& x) const {
    return PythonCall("nn.Linear").arg(x.back()).arg(out_features).key("bias", bias, true).str();
  }
};

}  // namespace

LayerType linear() {
  return layer_type<Linear>("linear",
                            "Fully connected layer: [N, ..., I] to [N, ..., out_features].");
}

}  // namespace dpt::layers
