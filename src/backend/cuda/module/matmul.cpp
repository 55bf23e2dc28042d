#include "backend/cuda/module/matmul.h"

#include <fmt/format.h>

#include "backend/cuda/interface/library_answer.h"
#include "backend/cuda/interface/work_text.h"
#include "backend/cuda/module/check.h"
#include "base/fail.h"

// Note [row-major]: cuBLASLt uses column-major matrices. A row-major matrix [r, c] is a
// column-major one of c rows and r columns, so cuBLASLt computes the transposed product: d^T [n, m]
// = op(b)^T op(a)^T. Its A is our b and its B our a. Its rows are our columns, along which it
// applies the bias.
namespace dpt::cuda {
namespace {

cudaDataType_t type_of(DType t) {
  switch (t) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      fail(Fault::device, "cuBLASLt is not asked to multiply {}", name_of(t));
  }
}

// Owns a handle that `destroy` destroys.
template <class T, cublasStatus_t (*destroy)(T)>
struct Owned {
  T value = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value) destroy(value);
  }
};
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

class MatmulWork final : public RuntimeWork {
 public:
  MatmulWork(cublasLtHandle_t handle, const Matmul& matmul) : handle_(handle), matmul_(matmul) {
    describe();
    choose();
  }

  size_t workspace_bytes() const override { return chosen_.workspaceSize; }
  std::string algorithm() const override {
    int id = 0, tile = 0, split = 0;
    const auto read = [&](cublasLtMatmulAlgoConfigAttributes_t what, int& value) {
      size_t written = 0;
      cublasLtMatmulAlgoConfigGetAttribute(&chosen_.algo, what, &value, sizeof value, &written);
    };
    read(CUBLASLT_ALGO_CONFIG_ID, id);
    read(CUBLASLT_ALGO_CONFIG_TILE_ID, tile);
    read(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, split);
    return fmt::format("cublaslt {} tile {} split {}", id, tile, split);
  }

  void enqueue(cudaStream_t stream, std::span<std::byte* const> tensors,
               std::byte* workspace) override {
    require(tensors.size() == matmul_.tensors(),
            "a matrix product has a, b, d, and what its epilogue takes");
    if (has_vector(matmul_.epilogue))
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(tensors[3]));
    if (has_mask(matmul_.epilogue))
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(tensors.back()));
    const float one = 1, zero = 0;
    check(cublasLtMatmul(handle_, description_.value, &one, tensors[1], b_.value, tensors[0],
                         a_.value, &zero, tensors[2], d_.value, tensors[2], d_.value, &chosen_.algo,
                         workspace, chosen_.workspaceSize, stream),
          "cublasLtMatmul");
  }

 private:
  // Stands for addresses that are not known yet. The choice of an algorithm depends on their
  // alignment.
  static constexpr uintptr_t kSomeAddress = 16;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t what, const T& value) {
    check(cublasLtMatmulDescSetAttribute(description_.value, what, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }
  static void layout(MatrixLayout& out, DType type, int64_t rows, int64_t columns) {
    check(cublasLtMatrixLayoutCreate(&out.value, type_of(type), static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(columns), rows),
          "cublasLtMatrixLayoutCreate");
  }

  void describe() {
    const Matmul& m = matmul_;
    const auto compute =
        m.in == DType::f32 && m.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&description_.value, compute, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, m.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, m.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    const auto epilogue = [&] {
      switch (m.epilogue) {
        case Epilogue::bias:
          return CUBLASLT_EPILOGUE_BIAS;
        case Epilogue::relu:
          return CUBLASLT_EPILOGUE_RELU;
        case Epilogue::bias_relu:
          return CUBLASLT_EPILOGUE_RELU_BIAS;
        case Epilogue::relu_mask:
          return CUBLASLT_EPILOGUE_RELU_AUX;
        case Epilogue::bias_relu_mask:
          return CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
        case Epilogue::relu_gradient:
          return CUBLASLT_EPILOGUE_DRELU;
        case Epilogue::sums_of_a:
          return CUBLASLT_EPILOGUE_BGRADB;
        case Epilogue::none:
          break;
      }
      return CUBLASLT_EPILOGUE_DEFAULT;
    }();
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (has_vector(m.epilogue)) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_of(m.out)));
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, kSomeAddress);
    }
    if (has_mask(m.epilogue)) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, m.mask_row() * 8);  // in bits
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kSomeAddress);
    }
    layout(b_, m.in, m.transpose_b ? m.k : m.n, m.transpose_b ? m.n : m.k);
    layout(a_, m.in, m.transpose_a ? m.m : m.k, m.transpose_a ? m.k : m.m);
    layout(d_, m.out, m.n, m.m);
  }

  void choose() {
    Preference preference;
    check(cublasLtMatmulPreferenceCreate(&preference.value), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
      check(cublasLtMatmulPreferenceSetAttribute(preference.value, what, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMatmulWorkspace});
    for (const auto what :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(what, uint32_t{16});
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, description_.value, b_.value, a_.value, d_.value,
                                       d_.value, preference.value, 1, &chosen_, &found);
    static_assert(kCublasSuccess == CUBLAS_STATUS_SUCCESS &&
                  kCublasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
    const Answer answer = cublas_answer(status, found);
    if (answer == Answer::refused)
      throw NoAlgorithm("cuBLASLt has no algorithm for " + cuda::describe(matmul_));
    if (answer == Answer::failed)
      check(status, ("cublasLtMatmulAlgoGetHeuristic for " + cuda::describe(matmul_)).c_str());
  }

  cublasLtHandle_t handle_;
  Matmul matmul_;
  Description description_;
  MatrixLayout a_, b_, d_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace

std::unique_ptr<RuntimeWork> prepare_matmul(cublasLtHandle_t handle, const Matmul& matmul) {
  return std::make_unique<MatmulWork>(handle, matmul);
}

}  // namespace dpt::cuda
