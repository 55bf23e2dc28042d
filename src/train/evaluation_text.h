// Texts of an evaluation: for people, for metrics.jsonl, and as a table of a confusion matrix.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/step_executor.h"
#include "formats/json.h"

namespace dpt {

// "Test loss: 0.3456, Accuracy: 89.12 %, Test f1: 0.8912" or "Validation loss: 0.3456, Validation
// accuracy: 89.12 %". set: test or validation. digits: of the loss.
std::string evaluation_text(std::string_view set, const Evaluation& evaluation, int digits = 4);

// Adds "test.loss": 0.34, "test.accuracy": 0.891200, the other metrics, and those of each label.
void add_evaluation(Json& record, std::string_view set, const Evaluation& evaluation);

// CSV: a row for each actual class, a column for each predicted one, both with their names, or with
// their numbers if there are no names. REQUIRES: evaluation.confusion_matrix is not empty.
std::string confusion_csv(const Evaluation& evaluation, std::span<const std::string> class_names);

}  // namespace dpt
