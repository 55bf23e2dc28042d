#include "formats/pickle.h"

#include <bit>
#include <optional>
#include <utility>

#include "base/fail.h"

namespace dpt {
namespace {

// Instructions of Python's pickle.py, by its names.
constexpr uint8_t kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kBinInt = 'J',
                  kBinInt1 = 'K', kBinInt2 = 'M', kNone = 'N', kBinPersId = 'Q', kReduce = 'R',
                  kBinUnicode = 'X', kAppend = 'a', kBuild = 'b', kGlobal = 'c', kAppends = 'e',
                  kBinGet = 'h', kLongBinGet = 'j', kBinPut = 'q', kLongBinPut = 'r',
                  kSetItem = 's', kTuple = 't', kSetItems = 'u', kEmptyDict = '}', kEmptyList = ']',
                  kEmptyTuple = ')', kBinFloat = 'G', kProto = 0x80, kTuple1 = 0x85, kTuple2 = 0x86,
                  kTuple3 = 0x87, kNewTrue = 0x88, kNewFalse = 0x89, kLong1 = 0x8a,
                  kShortBinUnicode = 0x8c, kStackGlobal = 0x93, kMemoize = 0x94, kFrame = 0x95;

constexpr size_t kMostValues = size_t{1} << 20;

}  // namespace

class PickleReader {
 public:
  PickleReader(Pickle& out, const std::string& path, const Pickle::Allows& allows)
      : out_(out), path_(path), allows_(allows), text_(out.bytes_.data(), out.bytes_.size()) {}

  void run() {
    while (true) {
      start_ = at_;
      const auto op = static_cast<uint8_t>(number(1));
      if (op == kStop) break;
      if (!constant(op) && !container(op) && !memory(op)) object(op);
    }
    out_.root_ = pop();
    if (!stack_.empty()) refuse("values are left over at its end");
  }

 private:
  using Kind = Pickle::Kind;
  using Ref = Pickle::Ref;
  using Value = Pickle::Value;

  [[noreturn]] void refuse(std::string_view why) const {
    fail(Fault::data, "{}: its pickle is not read, at byte {}: {}", path_, start_, why);
  }

  std::string_view bytes(uint64_t count) {
    if (count > text_.size() - at_) refuse("it is cut short");
    const std::string_view out = text_.substr(at_, count);
    at_ += count;
    return out;
  }
  uint64_t number(size_t count) {  // little-endian
    const std::string_view all = bytes(count);
    uint64_t out = 0;
    for (size_t i = count; i-- > 0;) out = out << 8 | static_cast<unsigned char>(all[i]);
    return out;
  }
  std::string_view line() {
    const size_t end = text_.find('\n', at_);
    if (end == text_.npos) refuse("it is cut short");
    const std::string_view out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  void push(Value value) {
    if (out_.values_.size() == kMostValues) refuse("it holds more than a million values");
    out_.values_.push_back(std::move(value));
    stack_.push_back(static_cast<Ref>(out_.values_.size() - 1));
  }
  Value& value(Ref ref) { return out_.values_[ref]; }
  Ref pop() {
    if (stack_.empty()) refuse("a value is missing");
    const Ref out = stack_.back();
    if (value(out).kind == Kind::mark) refuse("a value is missing");
    stack_.pop_back();
    return out;
  }
  std::vector<Ref> pop(size_t count) {
    std::vector<Ref> out(count);
    for (size_t i = count; i-- > 0;) out[i] = pop();
    return out;
  }
  std::vector<Ref> pop_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && value(stack_[begin - 1]).kind != Kind::mark) --begin;
    if (begin == 0) refuse("a mark is missing");
    std::vector<Ref> out(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return out;
  }
  Value& top() {
    if (stack_.empty() || value(stack_.back()).kind == Kind::mark) refuse("a value is missing");
    return value(stack_.back());
  }

  bool constant(uint8_t op) {
    switch (op) {
      case kNone:
        return push({.kind = Kind::none}), true;
      case kNewTrue:
      case kNewFalse:
        return push({.kind = Kind::boolean, .number = op == kNewTrue}), true;
      case kBinInt:
        return integer(static_cast<int32_t>(number(4))), true;
      case kBinInt1:
        return integer(static_cast<int64_t>(number(1))), true;
      case kBinInt2:
        return integer(static_cast<int64_t>(number(2))), true;
      case kLong1:
        return long1(), true;
      case kBinFloat:
        return push({.kind = Kind::real, .real = big_endian_double()}), true;
      case kBinUnicode:
        return push({.kind = Kind::text, .text = bytes(number(4))}), true;
      case kShortBinUnicode:
        return push({.kind = Kind::text, .text = bytes(number(1))}), true;
      default:
        return false;
    }
  }

  void integer(int64_t x) { push({.kind = Kind::integer, .number = x}); }

  void long1() {
    const uint64_t count = number(1);
    if (count > 8) refuse("an integer has more than 64 bits");
    const uint64_t bits = number(count);
    // The highest bit of the last byte is the sign.
    const auto unused = static_cast<int>(64 - 8 * count);
    integer(count == 0 ? 0 : static_cast<int64_t>(bits << unused) >> unused);
  }

  double big_endian_double() {
    uint64_t bits = 0;
    for (const char c : bytes(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    return std::bit_cast<double>(bits);
  }

  bool container(uint8_t op) {
    switch (op) {
      case kMark:
        return push({.kind = Kind::mark}), true;
      case kPop:
        if (stack_.empty()) refuse("a value is missing");
        return stack_.pop_back(), true;
      case kPopMark:
        return pop_to_mark(), true;
      case kEmptyTuple:
        return push({.kind = Kind::tuple}), true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return tuple(pop(static_cast<size_t>(op - kTuple1) + 1)), true;
      case kTuple:
        return tuple(pop_to_mark()), true;
      case kEmptyList:
        return push({.kind = Kind::list}), true;
      case kEmptyDict:
        return push({.kind = Kind::dict}), true;
      case kAppend:
        return append(pop(1)), true;
      case kAppends:
        return append(pop_to_mark()), true;
      case kSetItem:
        return set_items(pop(2)), true;
      case kSetItems:
        return set_items(pop_to_mark()), true;
      default:
        return false;
    }
  }

  void tuple(std::vector<Ref> items) { push({.kind = Kind::tuple, .items = std::move(items)}); }
  void append(const std::vector<Ref>& items) {
    Value& list = top();
    if (list.kind != Kind::list) refuse("items are added to something else than a list");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<Ref>& items) {
    Value& dict = top();
    if ((dict.kind != Kind::dict && dict.kind != Kind::call) || items.size() % 2 != 0)
      refuse("items are set in something else than a dict");
    dict.members.insert(dict.members.end(), items.begin(), items.end());
  }

  // Values that are used several times.
  bool memory(uint8_t op) {
    switch (op) {
      case kBinPut:
        return put(number(1)), true;
      case kLongBinPut:
        return put(number(4)), true;
      case kMemoize:
        return put(memo_.size()), true;
      case kBinGet:
        return get(number(1)), true;
      case kLongBinGet:
        return get(number(4)), true;
      default:
        return false;
    }
  }
  void put(uint64_t index) {
    top();
    if (index >= kMostValues) refuse("it holds more than a million values");
    if (index >= memo_.size()) memo_.resize(index + 1);
    memo_[index] = stack_.back();
  }
  void get(uint64_t index) {
    if (index >= memo_.size() || !memo_[index]) refuse("a value is used before it is made");
    if (stack_.size() > kMostValues) refuse("it holds more than a million values");
    stack_.push_back(*memo_[index]);
  }

  void object(uint8_t op) {
    switch (op) {
      case kProto:
        if (const uint64_t protocol = number(1); protocol < 2 || protocol > 5)
          refuse(fmt::format("its protocol is {}", protocol));
        return;
      case kFrame:
        number(8);
        return;
      case kGlobal: {
        const std::string_view module = line();
        return name(module, line());
      }
      case kStackGlobal: {
        const Ref attribute = pop(), module = pop();
        if (value(attribute).kind != Kind::text || value(module).kind != Kind::text)
          refuse("a name is not a text");
        return name(value(module).text, value(attribute).text);
      }
      case kReduce: {
        std::vector<Ref> both = pop(2);
        if (value(both[0]).kind != Kind::name || value(both[1]).kind != Kind::tuple)
          refuse("it calls something else than a name");
        return push({.kind = Kind::call, .items = std::move(both)});
      }
      case kBinPersId:
        return push({.kind = Kind::persistent, .items = pop(1)});
      case kBuild:  // attributes of an object, such as a state_dict's _metadata
        pop();
        if (top().kind != Kind::call) refuse("it sets attributes of something else than an object");
        return;
      default:
        refuse(fmt::format("the instruction 0x{:02x} is not one of plain data", op));
    }
  }

  void name(std::string_view module, std::string_view attribute) {
    if (!allows_(module, attribute))
      refuse(
          fmt::format("it refers to {:.100}.{:.100}, and dptrain runs no code from files; save "
                      "the model's state_dict() alone",
                      module, attribute));
    push({.kind = Kind::name, .text = module, .attribute = attribute});
  }

  Pickle& out_;
  const std::string& path_;
  const Pickle::Allows& allows_;
  std::string_view text_;
  size_t at_ = 0, start_ = 0;
  std::vector<Ref> stack_;
  std::vector<std::optional<Ref>> memo_;
};

Pickle::Pickle(std::string bytes, const std::string& path, const Allows& allows)
    : bytes_(bytes.begin(), bytes.end()) {
  PickleReader(*this, path, allows).run();
}

namespace {

std::string little(uint64_t value, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

}  // namespace

PickleWriter& PickleWriter::name(std::string_view module, std::string_view attribute) {
  out_ += fmt::format("c{}\n{}\n", module, attribute);
  return *this;
}
PickleWriter& PickleWriter::text(std::string_view utf8) {
  out_ += 'X' + little(utf8.size(), 4);
  out_ += utf8;
  return *this;
}
PickleWriter& PickleWriter::integer(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  if (value >= 0 && value < 256)
    out_ += 'K' + little(bits, 1);
  else if (value >= INT32_MIN && value <= INT32_MAX)
    out_ += 'J' + little(bits, 4);
  else
    out_ += std::string("\x8a\x08") + little(bits, 8);
  return *this;
}
PickleWriter& PickleWriter::boolean(bool value) {
  out_ += value ? '\x88' : '\x89';
  return *this;
}
PickleWriter& PickleWriter::mark() {
  out_ += '(';
  return *this;
}
PickleWriter& PickleWriter::tuple() {
  out_ += 't';
  return *this;
}
PickleWriter& PickleWriter::empty_tuple() {
  out_ += ')';
  return *this;
}
PickleWriter& PickleWriter::call() {
  out_ += 'R';
  return *this;
}
PickleWriter& PickleWriter::persistent() {
  out_ += 'Q';
  return *this;
}
PickleWriter& PickleWriter::set_items() {
  out_ += 'u';
  return *this;
}
std::string PickleWriter::finish() { return std::move(out_) + '.'; }

}  // namespace dpt
