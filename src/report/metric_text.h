// How the numbers of metrics.jsonl are shown to people, by their names (spec/metric_name.h).
#pragma once

#include <string>
#include <string_view>

namespace dpt {

// The number with its unit: "0.4321", "92.10 %" of a share such as the accuracy, "0.25 s". The name
// may begin with "best.".
std::string value_text(std::string_view name, double value);
bool in_percent(std::string_view name);  // whether value_text() is one

// What a chart or a table calls the number: the name itself of losses and metrics, "learning rate"
// of "lr", the parameter's name of "grad_norms.NAME".
std::string title_of(std::string_view name);

// Numbers of the same group share a chart: "loss" of "validation.loss" and "step.loss",
// "grad_norms" of "grad_norms.NAME", "seconds" of both kinds of seconds.
std::string_view group_of(std::string_view name);

// Whether the number is a result: the loss, or a metric of a set.
bool is_result(std::string_view name);

}  // namespace dpt
