#include "inference/prediction.h"

#include <cmath>
#include <limits>

#include "inference/trained.h"

namespace dpt {
namespace {

InputFiles files_of(const std::vector<std::pair<std::string, int64_t>>& files) {
  InputFiles out;
  int64_t samples = 0;
  for (const auto& [file, count] : files) {
    out.files.push_back(file);
    out.first.push_back(samples);
    samples += count;
  }
  out.dataset.inputs.desc = {DType::f32, {samples, 2}};
  return out;
}

SampleForm classes(int64_t count, std::vector<std::string> names = {}) {
  SampleForm out;
  out.stored = {DType::f32, {2}};
  out.target = {DType::i32, {}};
  out.classes = count;
  out.class_names = std::move(names);
  return out;
}

SampleForm values(int64_t columns) {
  SampleForm out;
  out.stored = {DType::f32, {2}};
  out.target = {DType::f32, {columns}};
  return out;
}

LoadedText spec_of(const std::string& loss, const std::string& transforms = "[]") {
  return LoadedText(
      "data: {dataset: {random: {samples: 2, in_features: 2, out_features: 2}}, batch_size: 1, "
      "target_transforms: " +
      transforms + "}\nmodel: [{linear: 2}]\nloss: " + loss + "\noptimizer: sgd\n");
}

// Scores whose softmax is 0.2, 0.7 and 0.1.
const std::vector<float> kScores = {std::log(2.0F), std::log(7.0F), std::log(1.0F)};

}  // namespace

TEST_CASE("classes by their probability") {
  const LoadedText text = spec_of("cross_entropy");
  const InputFiles two = files_of({{"a.csv", 2}});
  std::vector<float> outputs = kScores;
  outputs.insert(outputs.end(), {0, 0, 1});
  const SampleForm form = classes(3, {"cat", "dog", "a, b"});
  const PredictionTable table(text.spec, form, two, {3}, 2);
  CHECK(table.text(outputs) ==
        "file   row  class  probability  class 2  probability 2\n"
        "a.csv    0    dog       0.7000      cat         0.2000\n"
        "a.csv    1   a, b       0.5761      cat         0.2119\n");
  CHECK(table.csv(outputs) ==
        "file,row,class,probability,class 2,probability 2\n"
        "a.csv,0,dog,0.7,cat,0.2\n"
        "a.csv,1,\"a, b\",0.57611686,cat,0.21194156\n");
  const SampleForm numbers = classes(3);
  const PredictionTable one(text.spec, numbers, two, {3}, 1);
  CHECK(
      one.json(outputs) ==
      "{\"predictions\": [\n"
      "  {\"file\": \"a.csv\", \"row\": 0, \"classes\": [{\"class\": 1, \"probability\": 0.7}]},\n"
      "  {\"file\": \"a.csv\", \"row\": 1, \"classes\": [{\"class\": 2, \"probability\": "
      "0.57611686}]}\n"
      "]}\n");
}

TEST_CASE("images have no rows") {
  const LoadedText text = spec_of("nll_loss");
  const InputFiles images = files_of({{"a.png", 1}, {"long/name.png", 1}});
  const float outputs[] = {std::log(0.25F), std::log(0.75F), 0, -100};
  const SampleForm form = classes(2);
  CHECK(PredictionTable(text.spec, form, images, {2}, 1).text(outputs) ==
        "file           class  probability\n"
        "a.png              1       0.7500\n"
        "long/name.png      0       1.0000\n");
}

TEST_CASE("the scores of other losses") {
  const InputFiles one = files_of({{"a", 1}});
  const float outputs[] = {2, 2, -1};
  const SampleForm form = classes(3);
  const LoadedText squares = spec_of("mse_loss", "[one_hot]");
  CHECK(PredictionTable(squares.spec, form, one, {3}, 5).csv(outputs) ==
        "file,row,class,score,class 2,score 2,class 3,score 3\na,0,0,2,1,2,2,-1\n");
  const LoadedText logits = spec_of("bce_with_logits_loss", "[one_hot]");
  CHECK(PredictionTable(logits.spec, form, one, {3}, 1).csv(outputs) ==
        "file,row,class,probability\na,0,0,0.8807971\n");
  // NaN comes first, as in PyTorch's argmax.
  const float broken[] = {2, std::numeric_limits<float>::quiet_NaN(), -1};
  CHECK(PredictionTable(squares.spec, form, one, {3}, 1).csv(broken) ==
        "file,row,class,score\na,0,1,nan\n");
}

TEST_CASE("the table for terminals has enough digits to tell prices apart") {
  const InputFiles three = files_of({{"a", 1}, {"b", 1}, {"c", 1}});
  const LoadedText plain = spec_of("mse_loss");
  const float outputs[] = {380909312, 0.1234567F, -1e20F};
  const SampleForm form = values(1);
  CHECK(PredictionTable(plain.spec, form, three, {1}, 1).text(outputs) ==
        "file      value\n"
        "a     380909312\n"
        "b     0.1234567\n"
        "c        -1e+20\n");
}

TEST_CASE("values in the units of the data") {
  const InputFiles two = files_of({{"a", 1}, {"b", 1}});
  const float outputs[] = {1, 2, 0.5, -1};
  const LoadedText plain = spec_of("mse_loss");
  SampleForm form = values(2);
  CHECK(PredictionTable(plain.spec, form, two, {2}, 1).text(outputs) ==
        "file  value 0  value 1\n"
        "a           1        2\n"
        "b         0.5       -1\n");
  form.columns = {
      .names = {"x", "price", "rooms"}, .header = true, .inputs = {0}, .targets = {1, 2}};
  const LoadedText units = spec_of("mse_loss", "[{standardize: {mean: [100, 3], std: [10, 2]}}]");
  CHECK(PredictionTable(units.spec, form, two, {2}, 1).csv(outputs) ==
        "file,row,price,rooms\na,0,110,7\nb,0,105,1\n");
  SampleForm same = form;
  same.columns.names = {"x", "row", "file"};
  CHECK(PredictionTable(units.spec, same, two, {2}, 1).csv(outputs) ==
        "file,row,row.1,file.1\na,0,110,7\nb,0,105,1\n");
  CHECK(PredictionTable(units.spec, form, two, {2}, 1).json(outputs) ==
        "{\"predictions\": [\n"
        "  {\"file\": \"a\", \"row\": 0, \"values\": {\"price\": 110, \"rooms\": 7}},\n"
        "  {\"file\": \"b\", \"row\": 0, \"values\": {\"price\": 105, \"rooms\": 1}}\n"
        "]}\n");
}

TEST_CASE("values in files keep the digits of a float32") {
  const InputFiles three = files_of({{"a", 3}});
  const float outputs[] = {1234500, 1234501, 1234502.5F};
  const LoadedText plain = spec_of("mse_loss");
  const SampleForm form = values(1);
  const PredictionTable table(plain.spec, form, three, {1}, 1);
  CHECK(table.csv(outputs) == "file,row,value\na,0,1234500\na,1,1234501\na,2,1234502.5\n");
  CHECK(has(table.json(outputs), "{\"value\": 1234502.5}"));
  CHECK(has(table.json_lines(outputs), "{\"value\": 1234501}"));
}

TEST_CASE("outputs become what the targets are: counts and probabilities") {
  const InputFiles one = files_of({{"a", 1}});
  const auto numbers = [&](const std::string& loss, const std::vector<float>& outputs) {
    const LoadedText text = spec_of(loss);
    const std::string csv = PredictionTable(text.spec, values(2), one, {2}, 1).csv(outputs);
    return csv.substr(csv.find('\n') + 1);
  };
  const float half = std::log(0.5F);
  CHECK(numbers("poisson_nll_loss", {0, half}) == "a,0,1,0.5\n");
  CHECK(numbers("{poisson_nll_loss: {log_input: false}}", {0.25, 3}) == "a,0,0.25,3\n");
  CHECK(numbers("kl_div", {0, half}) == "a,0,1,0.5\n");
  CHECK(numbers("{kl_div: {log_target: true}}", {0, -2}) == "a,0,0,-2\n");
  CHECK(numbers("cross_entropy", {3, 3}) == "a,0,0.5,0.5\n");
  CHECK(numbers("focal_loss", {3, 3}) == "a,0,0.5,0.5\n");
  CHECK(numbers("bce_with_logits_loss", {0, 0}) == "a,0,0.5,0.5\n");
  CHECK(numbers("soft_margin_loss", {0, 0}) == "a,0,0.5,0.5\n");
  CHECK(numbers("l1_loss", {3, -2}) == "a,0,3,-2\n");
}

// Outputs of gaussian_nll_loss are means, then variances or their logarithms.
TEST_CASE("means and variances in the units of the data") {
  const InputFiles one = files_of({{"a", 1}});
  SampleForm form = values(2);
  const float outputs[] = {1, 2, 0.25, -1};
  const LoadedText plain = spec_of("{gaussian_nll_loss: {eps: 0.01}}");
  // Negative variances count as eps, as in the loss.
  CHECK(PredictionTable(plain.spec, form, one, {4}, 1).csv(outputs) ==
        "file,row,mean 0,mean 1,variance 0,variance 1\na,0,1,2,0.25,0.01\n");
  const LoadedText units = spec_of("{gaussian_nll_loss: {log_variance: true}}",
                                   "[{standardize: {mean: [100000, 3], std: [10, 2]}}]");
  form.columns = {
      .names = {"x", "price", "rooms"}, .header = true, .inputs = {0}, .targets = {1, 2}};
  // exp(0.25) * 10^2 and exp(-1) * 2^2.
  CHECK(PredictionTable(units.spec, form, one, {4}, 1).csv(outputs) ==
        "file,row,price mean,rooms mean,price variance,rooms variance\n"
        "a,0,100010,7,128.40254,1.4715178\n");
  const float two[] = {1, 2};
  CHECK(PredictionTable(plain.spec, values(1), one, {2}, 1).json(two) ==
        "{\"predictions\": [\n"
        "  {\"file\": \"a\", \"row\": 0, \"values\": {\"mean\": 1, \"variance\": 2}}\n"
        "]}\n");
}

TEST_CASE("label sequences of ctc_loss, decoded greedily") {
  const InputFiles two = files_of({{"a", 2}});
  SampleForm form = classes(3);
  form.target = {DType::i32, {2}};
  const LoadedText text = spec_of("{ctc_loss: {blank: 2}}");
  const auto scores = [](const std::vector<int>& best) {
    std::vector<float> out;
    for (const int label : best)
      for (int c = 0; c < 3; ++c) out.push_back(c == label ? 5.F : 1.F);
    return out;
  };
  std::vector<float> outputs = scores({2, 0, 0, 2, 0, 1, 1});  // a repetition, and two zeros
  const std::vector<float> blanks = scores({2, 2, 2, 2, 2, 2, 2});
  outputs.insert(outputs.end(), blanks.begin(), blanks.end());
  const PredictionTable table(text.spec, form, two, {7, 3}, 1);
  CHECK(table.csv(outputs) == "file,row,labels\na,0,0 0 1\na,1,\n");
  CHECK(table.json_lines(outputs) ==
        "{\"file\": \"a\", \"row\": 0, \"labels\": [0, 0, 1]}\n"
        "{\"file\": \"a\", \"row\": 1, \"labels\": []}\n");
  form.class_names = {"x", "y", "-"};
  const PredictionTable named(text.spec, form, two, {7, 3}, 1);
  CHECK(named.text(outputs) == "file  row  labels\na       0   x x y\na       1        \n");
  CHECK(has(named.json(outputs), "\"labels\": [0, 0, 1], \"names\": [\"x\", \"x\", \"y\"]}"));
}

TEST_CASE("samples of images that could not be read have no line") {
  const LoadedText text = spec_of("nll_loss");
  InputFiles images = files_of({{"a.png", 1}, {"b.png", 1}, {"c.png", 1}});
  struct None : SampleReader {
    void read(uint32_t, std::span<std::byte>) const override {}
  };
  images.dataset.reader = std::make_shared<None>();
  images.unread->add(1, "b.png is damaged");
  const float outputs[] = {std::log(0.25F), std::log(0.75F), 0, 0, 0, -100};
  const SampleForm form = classes(2);
  const PredictionTable table(text.spec, form, images, {2}, 1);
  CHECK(table.csv(outputs) == "file,row,class,probability\na.png,0,1,0.75\nc.png,0,0,1\n");
  CHECK(!has(table.json(outputs), "b.png"));
  CHECK(!has(table.text(outputs), "b.png"));
}

TEST_CASE("outputs that are no list are refused") {
  const InputFiles one = files_of({{"a", 1}});
  const LoadedText text = spec_of("cross_entropy");
  const SampleForm sequences = classes(3), many = values(100);
  CHECK(
      has(error_of(Fault::spec,
                   [&] {
                     PredictionTable(text.spec, sequences, one, {4, 3}, 1);
                   }),
          "the model outputs [4, 3] for each sample, not one list of scores; write its outputs to "
          "a file with -o FILE.npy"));
  const LoadedText squares = spec_of("mse_loss");
  CHECK(has(error_of(Fault::spec, [&] { PredictionTable(squares.spec, many, one, {100}, 1); }),
            "the model outputs 100 values"));
}

}  // namespace dpt
