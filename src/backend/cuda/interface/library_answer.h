// Classifies the answers of cuBLASLt and cuDNN to a request to prepare work (device_work.h). Only
// after a refusal may an own kernel compute the operation. Any other failure is an error of the
// machine or of dptrain, which a slow fallback would hide.
#pragma once

#include <cstdint>
#include <string_view>

namespace dpt::cuda {

enum class Answer : uint8_t {
  made,     // there is an algorithm
  refused,  // the library supports no such operation: NoAlgorithm
  failed    // anything else: an error
};

inline constexpr int kCublasSuccess = 0, kCublasNotSupported = 15;  // cublasStatus_t

// status: a cublasStatus_t; found: the number of algorithms.
constexpr Answer cublas_answer(int status, int found) {
  if (status == kCublasSuccess) return found > 0 ? Answer::made : Answer::refused;
  return status == kCublasNotSupported ? Answer::refused : Answer::failed;
}

// The error codes of cuDNN's front end that matter here.
enum class DnnCode : uint8_t {
  good,
  not_supported,     // GRAPH_NOT_SUPPORTED
  heuristic_failed,  // HEURISTIC_QUERY_FAILED: no engine takes the graph
  no_plan,  // GRAPH_EXECUTION_PLAN_CREATION_FAILED: no engine that dptrain allows makes a plan
  other
};

// message: of the front end, including the statuses of cuDNN that it quotes. A missing NVRTC, an
// old driver and exhausted memory also end as "no engine", so the message is checked as well.
Answer dnn_answer(DnnCode code, std::string_view message);

// True if the message reports exhausted memory.
bool says_out_of_memory(std::string_view message);

}  // namespace dpt::cuda
