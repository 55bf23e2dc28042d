// Helpers of data sets: allocating tables, checking labels, finding files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// A table to be filled through as(). Not initialized.
struct NewTable {
  TensorDesc desc;
  std::shared_ptr<std::byte[]> data;
  explicit NewTable(const TensorDesc& desc);
  template <class T>
  std::span<T> as() const {
    return TensorView{desc, data.get()}.as<T>();
  }
  Table done() && { return {desc, std::move(data)}; }
};

// The elements of a table in memory order; elements that overlapping samples share appear once.
// REQUIRES: T is the C++ type of the table's dtype.
template <class T>
std::span<const T> values_of(const Table& table) {
  return {reinterpret_cast<const T*>(table.data.get()), static_cast<size_t>(table.stored())};
}

// Makes samples contiguous; copies if they overlap or leave gaps.
Table without_overlap(const Table& table);

// The same elements with another shape, sharing memory. REQUIRES: the numbers of elements are
// equal.
Table reshaped(const Table& table, const Shape& shape);

// Adds the channel to images: [N, H, W] becomes [N, 1, H, W]. Other shapes are unchanged.
Table with_channel(const Table& table);

// What the key `classes` of a data set takes, for messages: the set has no such key, or the value
// cannot be changed; a number; a number or `auto`.
enum class ClassesKey { none, number, automatic };

// Converts labels [N, ...] of at most `most_rank` dimensions, u8 or i32, to classes i32 of the same
// shape. Each must be 0 <= c < classes or equal `ignore`. If `classes` is 0, sets it to the largest
// label other than `ignore` + 1. Throws Error{data} with `path` and the index of the first wrong
// label.
Table as_classes(const Table& labels, int64_t& classes, const std::string& path,
                 std::optional<int64_t> ignore = {}, int most_rank = 1,
                 ClassesKey key = ClassesKey::none);

// Throws Error{data} if the numbers of samples differ.
void check_counts(const Table& inputs, const std::string& inputs_path, const Table& targets,
                  const std::string& targets_path);

// "fashion_mnist: 60000 x [1, 28, 28] u8, 10 classes, from DIR".
std::string describe(const std::string& name, const Dataset& dataset, const std::string& from);

// Keeps the first `samples` of a data set and notes it in the description. No effect if it has
// fewer.
void take_first(Dataset& dataset, int64_t samples);

// Finds the files of a named data set, each plain or with .gz, all in one folder; a folder that
// lacks them may have a complete set of `others` instead. Searches `given` if it is not empty;
// otherwise $DPTRAIN_DATA, then datasets/ in the spec's `folder`, in its parent and in the working
// directory, then the user's cache. The folder's name may be spelled with _, with -, or without.
// Throws Error{data} that lists every folder tried and says how to fetch the data set.
std::vector<std::string> find_files(const std::string& name, const std::string& given,
                                    const std::string& folder,
                                    const std::vector<std::string>& files,
                                    const std::vector<std::vector<std::string>>& others = {});

}  // namespace dpt
