// What an own kernel is, and how one is named across the seam.
//
// Note [own kernels]: a kernel is a plain struct. Its members are its arguments: pointers to device
// memory and numbers. libdptrain_cuda.so instantiates it for the device (module/entries.cuh), the
// tests' fake instantiates the same text for the host. There are two forms.
//
// A kernel that makes elements is called for each index from 0 to below a count, in any order:
//
//   DPT_HOST_DEVICE void operator()(int64_t i) const;
//
// A kernel that works in blocks, say one for each row, is called for each of so many blocks and
// says in phases what their threads do (block.h):
//
//   static constexpr int kThreads = 256;         of a block: whole warps
//   struct Shared { double sum[kThreads]; };     what its threads share, at most 48 KiB
//   template <class Block>
//   DPT_HOST_DEVICE void operator()(Block& block) const;
//
// Both say which memory a call with so many elements or blocks uses, for the tests' checks of
// bounds and of the order between streams:
//
//   template <class Visitor>
//   void touches(Visitor& v, int64_t count) const { v.reads(x, count), v.writes(y, count); }
//
// To add one: write the struct and name it in its file's KernelList. To add a file: its list in
// all.h, a .cu of a few lines in module/. A kernel's id is its place in these lists, so binary and
// module must be of one build; loading checks that.
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
  uint16_t list = 0, index = 0;  // which list of all.h, which kernel of it
  bool operator==(const KernelId&) const = default;
};

// A call of an own kernel without its type; `count` elements or blocks.
struct KernelLaunch {
  KernelId id;
  int64_t count = 0;
  const void* kernel = nullptr;
  size_t bytes = 0;
};

// The kernels of one file.
template <class... K>
struct KernelList {
  static constexpr size_t size = sizeof...(K);
};

// Threads of a block of a kernel that makes elements.
inline constexpr int kElementThreads = 256;

namespace detail {
template <class K>
concept Plain = std::is_trivially_copyable_v<K> && sizeof(K) <= 4096;  // what a launch takes along
}

template <class K>
concept BlockKernel = detail::Plain<K> && requires {
  typename K::Shared;
  K::kThreads;
} && sizeof(typename K::Shared) <= 48 * 1024 && K::kThreads % 32 == 0 && K::kThreads <= 1024;

template <class K>
concept ElementKernel = detail::Plain<K> && !BlockKernel<K> && requires(const K& kernel) {
  kernel(int64_t{});
};

// The name of its type, "SumRows", "Fill<float>", for errors and lists of calls.
template <class K>
constexpr std::string_view kernel_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__, mark = "K = ", ours = "dpt::cuda::";
  std::string_view name = text.substr(text.find(mark) + mark.size());
  name = name.substr(0, name.find_first_of(";]"));
  return name.starts_with(ours) ? name.substr(ours.size()) : name;
}

}  // namespace dpt::cuda
