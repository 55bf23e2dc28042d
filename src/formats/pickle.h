// Python's pickle format, read without executing anything, and written for torch.save files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

// A parsed pickle. Python would import names and call them; here a name and a call are values,
// whose meaning the caller decides.
class Pickle {
 public:
  enum class Kind : uint8_t {
    none,
    boolean,     // number: 0 or 1
    integer,     // number
    real,        // real
    text,        // text
    tuple,       // items
    list,        // items
    dict,        // members
    name,        // text, attribute: a module and a name in it
    call,        // items: a name and its tuple of arguments; members: what was set in the result
    persistent,  // items: its id, which refers to something outside of the pickle
    mark         // not in a finished pickle
  };
  using Ref = uint32_t;  // of a value
  struct Value {
    Kind kind = Kind::none;
    int64_t number = 0;
    double real = 0;
    std::string_view text, attribute;
    std::vector<Ref> items;
    std::vector<Ref> members;  // keys and values in turn
  };

  // Whether the pickle may name `attribute` of `module`.
  using Allows = std::function<bool(std::string_view module, std::string_view attribute)>;

  // Reads protocols 2 to 5. Throws Error{data} that names `path` and the position of an instruction
  // that is damaged, that names what is not allowed, or that plain data does not need. Refused:
  // more than 2^20 values, and integers of more than 64 bits.
  Pickle(std::string bytes, const std::string& path, const Allows& allows);

  const Value& root() const { return values_[root_]; }
  const Value& operator[](Ref ref) const { return values_[ref]; }
  bool is_name(Ref ref, std::string_view module, std::string_view attribute) const {
    const Value& v = values_[ref];
    return v.kind == Kind::name && v.text == module && v.attribute == attribute;
  }

 private:
  friend class PickleReader;
  std::vector<char> bytes_;  // texts refer to it
  std::vector<Value> values_;
  Ref root_ = 0;
};

// Writes a pickle of protocol 2, one instruction after another.
class PickleWriter {
 public:
  PickleWriter() : out_("\x80\x02") {}
  PickleWriter& name(std::string_view module, std::string_view attribute);
  PickleWriter& text(std::string_view utf8);
  PickleWriter& integer(int64_t value);
  PickleWriter& boolean(bool value);
  PickleWriter& mark();   // begins what tuple() and set_items() end
  PickleWriter& tuple();  // of the values since mark()
  PickleWriter& empty_tuple();
  PickleWriter& call();        // of a name with a tuple
  PickleWriter& persistent();  // of an id
  PickleWriter& set_items();   // the values since mark() are keys and values of the dict before it
  std::string finish();

 private:
  std::string out_;
};

}  // namespace dpt
