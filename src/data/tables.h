// What the data sets share: making tables, checking labels, finding files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// A table to be filled through `data`. Not initialised.
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

// The elements of a table as they lie in memory; what samples share is there once. REQUIRES: T is
// the C++ type of its dtype.
template <class T>
std::span<const T> values_of(const Table& table) {
  return {reinterpret_cast<const T*>(table.data.get()), static_cast<size_t>(table.stored())};
}

// The same samples one after another: a copy where they overlap or leave something out.
Table without_overlap(const Table& table);

// The same elements in another shape, sharing memory. REQUIRES: as many elements.
Table reshaped(const Table& table, const Shape& shape);

// Images [N, H, W] get their channel: [N, 1, H, W]. Others stay.
Table with_channel(const Table& table);

// u8 or i32 labels [N] as classes i32 [N]. Each must be 0 <= c < classes or `ignore`; where
// `classes` is 0 it becomes the largest other label + 1. Throws Error{data} with `path` and the
// first wrong label's place.
Table as_classes(const Table& labels, int64_t& classes, const std::string& path,
                 std::optional<int64_t> ignore = {});

// Throws Error{data} unless both have as many samples.
void check_counts(const Table& inputs, const std::string& inputs_path, const Table& targets,
                  const std::string& targets_path);

// "fashion_mnist: 60000 x [1, 28, 28] u8, 10 classes, from DIR"
std::string describe(const std::string& name, const Dataset& dataset, const std::string& from);

// Leaves the first `samples` of a set, and says so in its description; all where it has no more.
void take_first(Dataset& dataset, int64_t samples);

// Finds the files of a named set, each plain or with .gz, all in one folder; where they are not
// there, those of the first of `others` that are. Looked for in `given`
// if there is one, else in $DPTRAIN_DATA, datasets/ in the spec's `folder`, beside it and here,
// ../shared/datasets, and the user's cache, under the name with _, - or neither. Throws Error{data}
// that lists every folder tried and says how to fetch the set.
std::vector<std::string> find_files(const std::string& name, const std::string& given,
                                    const std::string& folder,
                                    const std::vector<std::string>& files,
                                    const std::vector<std::vector<std::string>>& others = {});

}  // namespace dpt
