#include "optim/precision.h"

#include <array>
#include <string>

#include "spec/keys.h"

namespace dpt {
namespace {

struct Plain {
  static KeyTable<Plain> keys() { return {}; }
};

// Common keys of bf16 and fp16.
struct Autocast {
  std::string level = "o1";
  std::string lists = "device";
  bool emulate = false;

  template <class Config>
  static KeyTable<Config> common() {
    return KeyTable<Config>()
        .choice("level", &Config::level, {"o1", "o0", "o2", "o3"},
                "o1: what autocast says; o2: all but batch normalisation; o3: weights too; o0: "
                "nothing")
        .choice("lists", &Config::lists, {"device", "cpu", "cuda"},
                "whose autocast: which operators stay in fp32")
        .optional("emulate", &Config::emulate,
                  "round results where nothing computes in it, to study what it does");
  }

  MixedPrecision mixed() const {
    MixedPrecision out;
    out.level = static_cast<PrecisionPolicy::Level>(level[1] - '0');
    if (lists != "device") out.cuda_lists = lists == "cuda";
    out.emulate = emulate;
    return out;
  }
};

struct Bf16 : Autocast {
  static KeyTable<Bf16> keys() { return common<Bf16>(); }
};

struct Fp16 : Autocast {
  std::optional<bool> scaler;
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;

  static KeyTable<Fp16> keys() {
    return common<Fp16>()
        .optional("scaler", &Fp16::scaler,
                  "whether the loss is scaled, and steps with an overflow are skipped; none: but "
                  "for o0 and o3")
        .optional("init_scale", &Fp16::init_scale, "the first scale", kPositive)
        .optional("growth_factor", &Fp16::growth_factor,
                  "of the scale, after growth_interval steps without an overflow",
                  Range{"must be above 1", 1, 1e9, true})
        .optional("backoff_factor", &Fp16::backoff_factor, "of the scale, after an overflow",
                  Range{"must be above 0 and below 1", 0, 1, true, true})
        .optional("growth_interval", &Fp16::growth_interval, "steps", kPositive);
  }

  MixedPrecision mixed() const {
    MixedPrecision out = Autocast::mixed();
    out.scaler = {scaler.value_or(level == "o1" || level == "o2"), init_scale, growth_factor,
                  backoff_factor, growth_interval};
    return out;
  }
};

template <class Config>
MixedPrecision mixed(const std::any& settings) {
  return std::any_cast<const Config&>(settings).mixed();
}

}  // namespace

std::span<const PrecisionType> precision_table() {
  static const std::array<PrecisionType, 4> table = {{
      {nameable<Plain>("fp32", "Single precision."), DType::f32, nullptr},
      {nameable<Plain>("tf32", "On CUDA, products of numbers with 10 bits of fraction."),
       DType::f32, nullptr},
      {nameable<Bf16>("bf16", "Mixed precision with bfloat16."), DType::bf16, mixed<Bf16>},
      {nameable<Fp16>("fp16", "Mixed precision with half precision and a scaled loss."), DType::f16,
       mixed<Fp16>},
  }};
  return table;
}

std::vector<const Nameable*> precision_words() {
  std::vector<const Nameable*> out;
  for (const PrecisionType& t : precision_table()) out.push_back(&t);
  return out;
}

}  // namespace dpt
