// Reads `model:` and `blocks:`: lists of entries, with blocks expanded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/expression.h"
#include "spec/spec.h"

namespace dpt {

inline constexpr size_t kDeepestBlocks = 32;    // nesting depth of blocks
inline constexpr size_t kMostParameters = 256;  // per block

// The keys of `init`.
inline constexpr std::string_view kInitKeys[] = {
    "weight", "bias", "in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"};

// The keys that may appear beside the name of a layer, block or residual.
std::vector<KeyDoc> item_keys();
// The keys of `residual:`, and of a block under `blocks:`.
std::vector<KeyDoc> residual_keys();
std::vector<KeyDoc> block_keys();

class ModelReader {
 public:
  // `blocks`: the value of `blocks:`, or null if there is none. It must outlive the reader.
  ModelReader(const Node* blocks, const Registries& registries, Diagnostics& d);

  std::vector<ModelItem> read_list(std::string_view key, const Node& list);

  // Reports errors in blocks that no entry uses, as far as their default parameters reveal them.
  void check_unused();

 private:
  struct Block {
    std::string name;
    const Node* parameters = nullptr;  // null: none
    const Node* layers = nullptr;
    bool used = false, open = false;  // open: being expanded
    bool sound = false;
  };

  void read_block(const Node::Entry& e);
  ModelItem read_item(const Node& n);
  void read_init(const Node& n, ModelItem& out);
  const Node::Entry* main_entry(const Node& n, const std::vector<std::string_view>& beside);
  void complain_beside(const Node::Entry& chosen, const Node::Entry& other,
                       const std::vector<std::string_view>& beside);
  void read_named(const Located<std::string>& name, const Node& settings, ModelItem& out);
  void read_residual(const Node& settings, const Owner& owner, ModelItem& out);
  void read_instance(Block& block, const Located<std::string>& name, const Node& settings,
                     ModelItem& out);
  Scope arguments(const Block& block, const Located<std::string>& name, const Node& settings);
  void check_names(const std::vector<ModelItem>& items);
  bool known(std::string_view name) const;
  std::vector<std::string_view> all_names() const;
  std::string of_images(std::string_view name) const;

  const Registries& registries_;
  Diagnostics& d_;
  std::map<std::string, Block, std::less<>> blocks_;
  Expansion substituted_;  // size of expanded blocks, arguments and defaults included
  Expansion model_;        // size of the entries: layers, their settings, their names
  int64_t path_ = 0;       // bytes of the names of the enclosing entries
  size_t depth_ = 0;
  bool images_ = false;  // the last layer that says so takes or makes images
};

}  // namespace dpt
