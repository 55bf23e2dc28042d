// SessionData: the data sets of a run, and their loaders.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "data/batch_loader.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "session/evaluated_set.h"

namespace dpt {

struct SessionData {
  Dataset train;
  // The set of the evaluations during training: the validation set if there is one, else the test
  // set; or the one that SessionQuery::evaluates names. Empty: there are no evaluations.
  std::optional<Dataset> test;
  EvaluatedSet evaluated = EvaluatedSet::test;  // which one `test` is
  // The sample numbers that are trained on and evaluated, in order. Empty: all of the data set.
  std::vector<uint32_t> train_rows, test_rows;
  // Draws the samples of an epoch for `sampler: weighted`; empty: each is taken once.
  std::optional<WeightedDraws> weighted;
  // The test set of a run that validates, for an evaluation after its last step; empty: there is
  // none, or the spec does not ask for it.
  std::optional<Dataset> final_test;
  bool ignores_padding = false;       // the loss ignores class 0, which pads targets that are moved
  std::optional<BatchLoader> loader;  // of `train`; set by load_data()
  std::optional<BatchLoader> test_loader;  // of `test`

  int64_t train_samples() const {
    return train_rows.empty() ? train.size() : static_cast<int64_t>(train_rows.size());
  }
  int64_t test_samples() const {  // REQUIRES: test
    return test_rows.empty() ? test->size() : static_cast<int64_t>(test_rows.size());
  }
  std::vector<uint32_t> test_order() const;  // REQUIRES: test
  std::string_view evaluated_set() const { return name_of(evaluated); }
  // Targets of the evaluated set that the loss does not ignore: the denominator of the accuracy.
  // REQUIRES: test.
  double counted_test_targets() const {
    const TensorDesc target = test_loader->target();  // of values: made of classes
    const Shape each = target.dtype == DType::i32 ? target.shape : test->targets.sample();
    return static_cast<double>(test_samples() * each.elements() - test->ignored);
  }
  bool ignores() const {
    return ignores_padding || train.ignored > 0 || (test && test->ignored > 0);
  }
};

}  // namespace dpt
