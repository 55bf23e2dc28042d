// Own kernels, and how the program refers to them without CUDA.
//
// Note [own kernels]: a kernel is a plain struct. Its members are its arguments: pointers to device
// memory and numbers. libdptrain_cuda.so instantiates it for the GPU (module/entries.cuh); the fake
// module of the tests instantiates the same source for the host. There are two forms.
//
// An element kernel is called for each index in [0, count), in any order:
//
//   DPT_HOST_DEVICE void operator()(int64_t i) const;
//
// A block kernel is called for each of `count` blocks, for example one per row. It describes in
// phases what the threads of a block do (block.h):
//
//   static constexpr int kThreads = 256;         threads of a block: a multiple of 32
//   struct Shared { double sum[kThreads]; };     shared memory of a block, at most 48 KiB
//   template <class Block>
//   DPT_HOST_DEVICE void operator()(Block& block) const;
//
// Both declare which memory a call with `count` elements or blocks uses. The tests check bounds and
// the order between streams with it:
//
//   template <class Visitor>
//   void touches(Visitor& v, int64_t count) const { v.reads(x, count), v.writes(y, count); }
//
// To add a kernel, write the struct and name it in its file's KernelList. To add a file, also name
// its list in all.h and add a .cu of a few lines in module/. A kernel's id is its index in these
// lists, so the program and the module must be of the same build; loading checks that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#ifdef __CUDACC__
#define DPT_HOST_DEVICE __host__ __device__
#else
#define DPT_HOST_DEVICE
#endif

namespace dpt::cuda {

struct KernelId {
  uint16_t list = 0, index = 0;  // index of a list in all.h, and of a kernel in it
  bool operator==(const KernelId&) const = default;
};

// A type-erased call of an own kernel for `count` elements or blocks.
struct KernelLaunch {
  KernelId id;
  int64_t count = 0;
  const void* kernel = nullptr;
  size_t bytes = 0;
};

// The kernels of one file.
template <class... K>
struct KernelList {
  static constexpr size_t kSize = sizeof...(K);
};

// Threads per block of element kernels.
inline constexpr int kElementThreads = 256;

namespace detail {
template <class K>
// The limit of CUDA's kernel arguments.
concept Plain = std::is_trivially_copyable_v<K> && sizeof(K) <= 4096;
}

template <class K>
concept BlockKernel = detail::Plain<K> && requires {
  typename K::Shared;
  K::kThreads;
} && sizeof(typename K::Shared) <= size_t{48} * 1024 && K::kThreads % 32 == 0 &&
    K::kThreads <= 1024;

template <class K>
concept ElementKernel = detail::Plain<K> && !BlockKernel<K> && requires(const K& kernel) {
  kernel(int64_t{});
};

// The name of a kernel's type, such as "SumRows" or "Fill<float>", for error messages and logs.
template <class K>
constexpr std::string_view kernel_name() {
  constexpr std::string_view kText = __PRETTY_FUNCTION__, kMark = "K = ", kOurs = "dpt::cuda::";
  std::string_view name = kText.substr(kText.find(kMark) + kMark.size());
  name = name.substr(0, name.find_first_of(";]"));
  return name.starts_with(kOurs) ? name.substr(kOurs.size()) : name;
}

}  // namespace dpt::cuda
