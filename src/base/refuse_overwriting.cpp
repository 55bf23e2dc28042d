#include "base/refuse_overwriting.h"

#include <filesystem>
#include <system_error>

#include "base/fail.h"

namespace dpt {

void refuse_overwriting(const std::string& output, const std::string& input) {
  std::error_code error;
  if (!std::filesystem::equivalent(output, input, error) || error) return;
  if (!std::filesystem::is_regular_file(output, error)) return;
  fail(Fault::spec, "{} is a file that this command reads; write to another file", output);
}

}  // namespace dpt
