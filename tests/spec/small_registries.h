// Small registries with the names and keys of some real things, so that the tests of this component
// need no other component.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace dpt::test {

struct None {
  static KeyTable<None> keys() { return {}; }
};

struct Linear {
  int64_t out_features = 0;
  bool bias = true;
  static KeyTable<Linear> keys() {
    return KeyTable<Linear>()
        .required("out_features", &Linear::out_features, "size of each output sample", kPositive)
        .optional("bias", &Linear::bias, "whether a learned offset is added");
  }
};

struct Dropout {
  double p = 0.5;
  static KeyTable<Dropout> keys() {
    return KeyTable<Dropout>().optional("p", &Dropout::p, "probability of a zero", kProbability);
  }
};

struct LayerNorm {
  std::vector<int64_t> normalized_shape;
  double eps = 1e-5;
  bool elementwise_affine = true;
  static KeyTable<LayerNorm> keys() {
    return KeyTable<LayerNorm>()
        .optional("normalized_shape", &LayerNorm::normalized_shape,
                  "the last extents; none: the last", kPositive)
        .optional("eps", &LayerNorm::eps, "added to the variance", kPositive)
        .optional("elementwise_affine", &LayerNorm::elementwise_affine, "learned scale and offset");
  }
};

struct Embedding {
  int64_t num_embeddings = 0, embedding_dim = 0;
  std::optional<int64_t> padding_idx;
  std::optional<double> max_norm;
  static KeyTable<Embedding> keys() {
    return KeyTable<Embedding>()
        .required("num_embeddings", &Embedding::num_embeddings, "size of the dictionary", kPositive)
        .required("embedding_dim", &Embedding::embedding_dim, "size of each vector", kPositive)
        .optional("padding_idx", &Embedding::padding_idx, "the row that is not trained")
        .optional("max_norm", &Embedding::max_norm, "rows are scaled down to it", kPositive);
  }
};

struct Softmax {
  int64_t dim = -1;
  static KeyTable<Softmax> keys() {
    return KeyTable<Softmax>().optional("dim", &Softmax::dim, "the dimension that sums to one");
  }
};

struct CrossEntropy {
  std::vector<double> weight;
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;
  static KeyTable<CrossEntropy> keys() {
    return KeyTable<CrossEntropy>()
        .choice("reduction", &CrossEntropy::reduction, {"mean", "sum"},
                "how terms become one number")
        .optional("weight", &CrossEntropy::weight, "of each class", kNotNegative)
        .optional("ignore_index", &CrossEntropy::ignore_index, "targets that do not count")
        .optional("label_smoothing", &CrossEntropy::label_smoothing, "shared over all classes",
                  kProbability);
  }
};

struct MseLoss {
  std::string reduction = "mean";
  static KeyTable<MseLoss> keys() {
    return KeyTable<MseLoss>().choice("reduction", &MseLoss::reduction, {"mean", "sum"},
                                      "how terms become one number");
  }
};

struct Sgd {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  static KeyTable<Sgd> keys() {
    return KeyTable<Sgd>()
        .optional("lr", &Sgd::lr, "learning rate", kNotNegative)
        .optional("momentum", &Sgd::momentum, "of the running gradient", kNotNegative)
        .optional("dampening", &Sgd::dampening, "of the gradient that joins it")
        .optional("weight_decay", &Sgd::weight_decay, "L2 penalty", kNotNegative)
        .optional("nesterov", &Sgd::nesterov, "Nesterov momentum");
  }
  static void check(const Sgd& s, const Owner& o, Diagnostics& d) {
    if (s.nesterov && (s.momentum <= 0 || s.dampening != 0))
      d.error(o.at("nesterov"), "'nesterov' needs a momentum and no dampening");
  }
};

struct Adam {
  double lr = 1e-3, eps = 1e-8, weight_decay = 0;
  std::vector<double> betas = {0.9, 0.999};
  bool amsgrad = false;
  static KeyTable<Adam> keys() {
    return KeyTable<Adam>()
        .optional("lr", &Adam::lr, "learning rate", kNotNegative)
        .optional("betas", &Adam::betas, "decays of the two averages", kBelowOne)
        .optional("eps", &Adam::eps, "added to the denominator", kNotNegative)
        .optional("weight_decay", &Adam::weight_decay, "L2 penalty", kNotNegative)
        .optional("amsgrad", &Adam::amsgrad, "the maximum of the second average");
  }
  static void check(const Adam& a, const Owner& o, Diagnostics& d) {
    if (a.betas.size() != 2) d.error(o.at("betas"), "'betas' must be two numbers");
  }
};

struct StepLr {
  int64_t step_size = 0;
  double gamma = 0.1;
  static KeyTable<StepLr> keys() {
    return KeyTable<StepLr>()
        .required("step_size", &StepLr::step_size, "intervals between two decays", kPositive)
        .optional("gamma", &StepLr::gamma, "factor of each decay");
  }
};

struct MultiStep {
  std::vector<int64_t> milestones;
  double gamma = 0.1;
  static KeyTable<MultiStep> keys() {
    return KeyTable<MultiStep>()
        .required("milestones", &MultiStep::milestones, "intervals of the decays", kPositive)
        .optional("gamma", &MultiStep::gamma, "factor of each decay");
  }
};

struct SyntheticImages {
  int64_t samples = 1000, classes = 10;
  static KeyTable<SyntheticImages> keys() {
    return KeyTable<SyntheticImages>()
        .optional("samples", &SyntheticImages::samples, "how many", kPositive)
        .optional("classes", &SyntheticImages::classes, "how many", kPositive);
  }
};

struct FashionMnist {
  std::string dir;
  static KeyTable<FashionMnist> keys() {
    return KeyTable<FashionMnist>().optional("dir", &FashionMnist::dir, "where its files lie");
  }
};

struct Divide {
  double by = 1;
  static KeyTable<Divide> keys() {
    return KeyTable<Divide>().required("by", &Divide::by, "the divisor");
  }
};

struct Normalize {
  std::vector<double> mean, std;
  static KeyTable<Normalize> keys() {
    return KeyTable<Normalize>()
        .required("mean", &Normalize::mean, "of each channel")
        .required("std", &Normalize::std, "of each channel", kPositive);
  }
};

struct Ddp {
  std::string backend = "shared_memory";
  double bucket_cap_mb = 25;
  static KeyTable<Ddp> keys() {
    return KeyTable<Ddp>()
        .choice("backend", &Ddp::backend, {"shared_memory", "gloo"}, "how ranks talk")
        .optional("bucket_cap_mb", &Ddp::bucket_cap_mb, "MiB of gradients sent at once", kPositive);
  }
};

struct Dp {
  std::optional<int64_t> output_device;
  static KeyTable<Dp> keys() {
    return KeyTable<Dp>().optional("output_device", &Dp::output_device, "where the loss is",
                                   kNotNegative);
  }
};

struct Uniform {
  double a = 0, b = 1;
  static KeyTable<Uniform> keys() {
    return KeyTable<Uniform>()
        .optional("a", &Uniform::a, "the smallest")
        .optional("b", &Uniform::b, "what all are below");
  }
};

struct Mixed {
  std::string level = "o1";
  static KeyTable<Mixed> keys() {
    return KeyTable<Mixed>().choice("level", &Mixed::level, {"o1", "o2"}, "how much");
  }
};

inline const Registries& small_registries() {
  static const RegistryEntry layers[] = {
      registry_entry<None>("flatten", "[N, ...] to [N, F]."),
      registry_entry<Linear>("linear", "Fully connected layer."),
      registry_entry<Embedding>("embedding", "Rows of a table."),
      registry_entry<None>("identity", "The input."),
      registry_entry<Dropout>("dropout", "Zeros at random."),
      registry_entry<None>("relu", "max(x, 0)."),
      registry_entry<None>("sigmoid", "1 / (1 + exp(-x))."),
      registry_entry<Softmax>("softmax", "Sums to one."),
      registry_entry<Softmax>("log_softmax", "Logarithm of softmax."),
      registry_entry<LayerNorm>("layer_norm", "Mean 0, variance 1."),
      registry_entry<None>("add", "The sum of its inputs."),
  };
  static const RegistryEntry losses[] = {
      registry_entry<CrossEntropy>("cross_entropy", "Of logits and classes."),
      registry_entry<MseLoss>("mse_loss", "Squared error.")};
  static const RegistryEntry optimizers[] = {
      registry_entry<Sgd>("sgd", "Gradient descent."),
      registry_entry<Adam>("adam", "Kingma & Ba 2015."),
      registry_entry<Adam>("adam_w", "Loshchilov & Hutter 2019.")};
  static const RegistryEntry schedules[] = {
      registry_entry<StepLr>("step", "Decays every step_size."),
      registry_entry<MultiStep>("multi_step", "Decays at milestones.")};
  static const RegistryEntry datasets[] = {
      registry_entry<FashionMnist>("fashion_mnist", "70000 images of clothes."),
      registry_entry<SyntheticImages>("synthetic_images", "Images made by a formula.")};
  static const RegistryEntry transforms[] = {
      registry_entry<None>("to_tensor", "Bytes / 255."),
      registry_entry<Divide>("divide", "By a number."),
      registry_entry<Normalize>("normalize", "By mean and deviation.")};
  static const RegistryEntry targets[] = {registry_entry<None>("one_hot", "A class as a row.")};
  static const RegistryEntry modes[] = {registry_entry<None>("single", "One device."),
                                        registry_entry<Dp>("dp", "Several devices in one process."),
                                        registry_entry<Ddp>("ddp", "A process for each device.")};
  static const RegistryEntry precisions[] = {registry_entry<None>("fp32", "Single."),
                                             registry_entry<Mixed>("bf16", "Mixed.")};
  static const RegistryEntry initialisations[] = {
      registry_entry<None>("zeros", "0."),
      registry_entry<Uniform>("uniform", "Between two numbers.")};
  const auto list = [](const auto& rows) {
    std::vector<const RegistryEntry*> out;
    for (const RegistryEntry& r : rows) out.push_back(&r);
    return out;
  };
  static const Registries all{
      list(layers),     list(losses),  list(optimizers), list(schedules),  list(datasets),
      list(transforms), list(targets), list(modes),      list(precisions), list(initialisations)};
  return all;
}

// A whole spec around what a test is about.
inline std::string with_rest(const std::string& part) {
  std::string out = part;
  const auto has = [&](const std::string& key) {
    return part.starts_with(key + ":") || part.find("\n" + key + ":") != part.npos;
  };
  if (!has("data")) out += "data: {dataset: fashion_mnist, batch_size: 100}\n";
  if (!has("model")) out += "model: [flatten, linear: 10]\n";
  if (!has("loss")) out += "loss: cross_entropy\n";
  if (!has("optimizer")) out += "optimizer: {adam: 0.01}\n";
  return out;
}

struct Read {
  SourceFile file;
  Diagnostics d;
  Node root;
  Spec spec;
  explicit Read(std::string text) : file{"t.yaml", std::move(text)} {
    root = read_yaml(file, d);
    spec = read_spec(root, small_registries(), d);
  }
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;
};

// The complaints about a spec; empty: it is sound.
inline std::string complaints(const std::string& text) { return Read(text).d.render(); }

}  // namespace dpt::test
