// The file that DPTRAIN_LOG_PLANS names: which algorithm of a library, or which own kernel,
// computes each operation on a GPU. Lines are appended, so ranks may share the file; columns are
// separated by tabs:
//   plan  cuda:0  [100, 200] = ...  cublaslt 66 tile 20 split 1  0 bytes  0.31 ms
//   node  cuda:0  fc1  linear_relu  cublaslt  cublaslt 66 tile 20 split 1
// A plan line is written once for all operations of the same shapes, with the time that the library
// took, and "from cache" where it was made at an earlier start (plan_cache.h); what the library
// refused says "refused: ...". A node line is written for each operation of
// the model's graph, with its layer, operator, implementation and the library's answers.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace dpt::cuda {

// Thread: one. Errors: Error{failed} where the file cannot be written.
class PlanLog {
 public:
  explicit PlanLog(int gpu);  // its index; opens the file if the environment names one
  ~PlanLog();
  PlanLog(const PlanLog&) = delete;
  PlanLog& operator=(const PlanLog&) = delete;

  bool on() const { return fd_ >= 0; }
  void plan(std::string_view operation, std::string_view answer, size_t workspace_bytes,
            double milliseconds, bool from_cache);
  // The same node of another program is written once.
  void node(std::string_view layer, std::string_view op, std::string_view implementation,
            std::span<const std::string> answers);

 private:
  void write(const std::string& line);
  std::string gpu_, path_;
  int fd_ = -1;
  std::set<std::string> nodes_;  // that were written
};

}  // namespace dpt::cuda
