// Words of PyTorch that have another form here, or none: for messages and `dptrain explain`.
#pragma once

#include <string>
#include <string_view>

namespace dpt {

// A word without PyTorch's packages, arguments, case, '_', '-' and spaces: "linear" of
// "torch.nn.Linear(784, 100)".
std::string plain_name(std::string_view word);

// What to do here instead, as the end of a sentence without a period; empty: nothing is known about
// the word. docs/from-pytorch.md tells the same to readers.
std::string_view pytorch_advice(std::string_view word);

}  // namespace dpt
