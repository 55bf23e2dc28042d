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
                "o1: like torch.autocast; o2: everything but batch norm; o3: also the weights; o0: "
                "nothing")
        .choice("lists", &Config::lists, {"device", "cpu", "cuda"},
                "which of torch.autocast's operator lists applies; device: the list of the device "
                "in use")
        .optional("emulate", &Config::emulate,
                  "round results to this precision on CPUs that cannot compute in it");
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
  std::string products = "auto";

  static constexpr Usage kUsage{"torch.autocast(dtype=torch.bfloat16)",
                                "precision: bf16\n"
                                "precision: {bf16: {level: o2, lists: cuda, emulate: true, "
                                "products: fma}}"};
  static KeyTable<Bf16> keys() {
    return common<Bf16>().choice("products", &Bf16::products, {"auto", "fma", "bf16"},
                                 "instruction of CPUs for products of bf16; bf16: VDPBF16PS; fma: "
                                 "that of fp32; auto: the one "
                                 "that is faster on this CPU");
  }

  MixedPrecision mixed() const {
    MixedPrecision out = Autocast::mixed();
    out.products = products == "fma"    ? MixedPrecision::Products::fma
                   : products == "bf16" ? MixedPrecision::Products::bf16
                                        : MixedPrecision::Products::automatic;
    return out;
  }
};

struct Fp16 : Autocast {
  static constexpr Usage kUsage{
      "torch.autocast(dtype=torch.float16), torch.amp.GradScaler",
      "precision: fp16\n"
      "precision: {fp16: {level: o1, lists: cuda, emulate: true, scaler: true, init_scale: 1024,\n"
      "    growth_factor: 2, backoff_factor: 0.5, growth_interval: 1000}}"};

  std::optional<bool> scaler;
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;

  static KeyTable<Fp16> keys() {
    return common<Fp16>()
        .optional("scaler", &Fp16::scaler,
                  "whether the loss is scaled and steps with an overflow are skipped; none: for o1 "
                  "and o2")
        .optional("init_scale", &Fp16::init_scale, "initial scale", kPositive)
        .optional("growth_factor", &Fp16::growth_factor,
                  "factor of the scale after growth_interval steps without an overflow",
                  Range{.text = "must be above 1", .low = 1, .high = 1e9, .above_low = true})
        .optional("backoff_factor", &Fp16::backoff_factor, "factor of the scale after an overflow",
                  Range{.text = "must be above 0 and below 1",
                        .low = 0,
                        .high = 1,
                        .above_low = true,
                        .below_high = true})
        .optional("growth_interval", &Fp16::growth_interval,
                  "steps without an overflow before the scale grows", kPositive);
  }

  MixedPrecision mixed() const {
    MixedPrecision out = Autocast::mixed();
    out.scaler = {.on = scaler.value_or(level == "o1" || level == "o2"),
                  .init_scale = init_scale,
                  .growth_factor = growth_factor,
                  .backoff_factor = backoff_factor,
                  .growth_interval = growth_interval};
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
      {registry_entry<Plain>("fp32", "Single precision everywhere.",
                             {"torch.float32", "precision: fp32"}),
       DType::f32, nullptr},
      {registry_entry<Plain>(
           "tf32",
           "Single precision; GPUs round the factors of products to TF32 (10 bits of fraction).",
           {"torch.backends.cuda.matmul.allow_tf32", "precision: tf32"}),
       DType::f32, nullptr},
      {registry_entry<Bf16>("bf16", "Mixed precision with bfloat16."), DType::bf16, mixed<Bf16>},
      {registry_entry<Fp16>("fp16", "Mixed precision with float16 and a scaled loss."), DType::f16,
       mixed<Fp16>},
  }};
  return table;
}

std::vector<const RegistryEntry*> precision_registry() {
  std::vector<const RegistryEntry*> out;
  for (const PrecisionType& t : precision_table()) out.push_back(&t);
  return out;
}

}  // namespace dpt
