#include "spec/expression.h"

#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "spec/keys.h"

namespace dpt {
namespace {

using Number = std::variant<int64_t, double>;

struct Wrong {
  std::string why;
};

double real(const Number& n) {
  return std::holds_alternative<double>(n) ? std::get<double>(n)
                                           : static_cast<double>(std::get<int64_t>(n));
}

int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Number of_integers(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool over = false;
  const bool divides = op == "/" || op == "//" || op == "%";
  if (divides && b == 0) throw Wrong{"divides by zero"};
  if (divides && b == -1) {  // the smallest integer cannot be negated
    if (op == "%") return int64_t{0};
    over = __builtin_sub_overflow(int64_t{0}, a, &out);
  } else if (op == "+") {
    over = __builtin_add_overflow(a, b, &out);
  } else if (op == "-") {
    over = __builtin_sub_overflow(a, b, &out);
  } else if (op == "*") {
    over = __builtin_mul_overflow(a, b, &out);
  } else if (op == "/" && a % b != 0) {
    throw Wrong{fmt::format("{} / {} is not an integer; use // to round down", a, b)};
  } else {
    out = op == "%" ? a - b * floor_divide(a, b) : floor_divide(a, b);
  }
  if (over) throw Wrong{"does not fit into 64 bits"};
  return out;
}

Number of_reals(std::string_view op, double a, double b) {
  if (op == "//" || op == "%") throw Wrong{fmt::format("'{}' takes integers", op)};
  if (op == "/" && b == 0) throw Wrong{"divides by zero"};
  const double out = op == "+" ? a + b : op == "-" ? a - b : op == "*" ? a * b : a / b;
  if (!std::isfinite(out)) throw Wrong{"does not fit into a double"};
  return out;
}

// Grammar: sum = product (+|- product)*; product = unary (*|/|//|% unary)*; unary = -unary | number
// | name | (sum).
class Parser {
 public:
  Parser(std::string_view text, const Scope& scope) : rest_(text), scope_(scope) {}

  Number all() {
    const Number out = sum();
    if (!rest_.empty()) throw Wrong{fmt::format("has unexpected text at '{}'", rest_)};
    return out;
  }

 private:
  bool take(std::string_view symbol) {
    skip();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(symbol.size());
    skip();
    return true;
  }
  void skip() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  static Number apply(std::string_view op, const Number& a, const Number& b) {
    if (std::holds_alternative<int64_t>(a) && std::holds_alternative<int64_t>(b))
      return of_integers(op, std::get<int64_t>(a), std::get<int64_t>(b));
    return of_reals(op, real(a), real(b));
  }

  Number sum() {
    Number left = product();
    while (true) {
      if (take("+"))
        left = apply("+", left, product());
      else if (take("-"))
        left = apply("-", left, product());
      else
        return left;
    }
  }

  Number product() {
    Number left = unary();
    while (true) {
      if (take("*"))
        left = apply("*", left, unary());
      else if (take("//"))
        left = apply("//", left, unary());
      else if (take("/"))
        left = apply("/", left, unary());
      else if (take("%"))
        left = apply("%", left, unary());
      else
        return left;
    }
  }

  Number unary() {
    if (++depth_ > 100) throw Wrong{"has too many nested parentheses or signs"};
    Number out;
    if (take("-")) {
      out = apply("-", int64_t{0}, unary());
    } else if (take("(")) {
      out = sum();
      if (!take(")")) throw Wrong{"has a '(' that is not closed"};
    } else {
      out = operand();
    }
    --depth_;
    return out;
  }

  Number operand() {
    skip();
    const auto inside = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    size_t size = 0;
    while (size < rest_.size() && (inside(rest_[size]) ||
                                   // the sign of an exponent, 1e-3
                                   (size > 0 && (rest_[size] == '-' || rest_[size] == '+') &&
                                    (rest_[size - 1] == 'e' || rest_[size - 1] == 'E') &&
                                    std::isdigit(static_cast<unsigned char>(rest_[0])))))
      ++size;
    Node word;
    word.text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    skip();
    if (word.text.empty())
      throw Wrong{rest_.empty() ? "ends too early"
                                : fmt::format("has an unexpected '{}'", rest_[0])};
    if (!std::isdigit(static_cast<unsigned char>(word.text[0])) && word.text[0] != '.') {
      const auto p = scope_.find(word.text);
      if (p == scope_.end()) throw Wrong{unknown(word.text)};
      word = p->second;
    }
    int64_t whole = 0;
    double number = 0;
    if (parse_scalar(word, whole)) return whole;
    if (parse_scalar(word, number)) return number;
    throw Wrong{fmt::format("'{:.40}' is not a number", word.text)};
  }

  std::string unknown(std::string_view name) const {
    std::vector<std::string_view> known;
    for (const auto& [key, value] : scope_) known.push_back(key);
    if (known.empty()) return fmt::format("has no parameter '{:.40}'; the block has none", name);
    return fmt::format("has no parameter '{:.40}'; {}", name, suggestion(name, known));
  }

  std::string_view rest_;
  const Scope& scope_;
  int depth_ = 0;
};

std::string_view trimmed(std::string_view s) {
  while (s.starts_with(' ')) s.remove_prefix(1);
  while (s.ends_with(' ')) s.remove_suffix(1);
  return s;
}

// The number as a spec writes it. A double without a fraction keeps ".0", so that it stays a
// double.
std::string text_of(const Number& n) {
  if (std::holds_alternative<int64_t>(n)) return fmt::format("{}", std::get<int64_t>(n));
  std::string text = fmt::format("{}", std::get<double>(n));
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

// Evaluates the text between ${ and }: a parameter unchanged, or else a number, stored in `number`.
const Node& evaluate(std::string_view text, const Scope& scope, Node& number) {
  const auto p = scope.find(trimmed(text));
  if (p != scope.end()) return p->second;
  number.kind = Node::Kind::scalar;
  number.text = text_of(Parser(trimmed(text), scope).all());
  return number;
}

// A scalar with its expressions replaced; if it is a single expression, its value. On error, `n`.
Node substitute_scalar(const Node& n, const Scope& scope, Expansion& made, Diagnostics& d) {
  Node out{.kind = n.kind, .where = n.where, .quoted = n.quoted};
  std::string_view rest = n.text;
  while (!rest.empty()) {
    const size_t begin = rest.find("${");
    out.text += rest.substr(0, begin);
    if (begin == rest.npos) break;
    rest.remove_prefix(begin);
    const size_t end = rest.find('}');
    const std::string_view inside = rest.substr(2, end == rest.npos ? end : end - 2);
    try {
      if (end == rest.npos) throw Wrong{"has no closing '}'"};
      Node number;
      const Node& value = evaluate(inside, scope, number);
      if (!made.add(amount_of(value), n.where, d)) return n;
      if (rest.size() == n.text.size() && end + 1 == rest.size()) {
        out = value;
        out.where = n.where;
        return out;
      }
      if (value.kind != Node::Kind::scalar)
        throw Wrong{"is not a single value, so it cannot be part of a text"};
      if (out.text.size() + value.text.size() > kMostScalarBytes)
        throw Wrong{fmt::format("expands to a text of more than {} bytes", kMostScalarBytes)};
      out.text += value.text;
    } catch (const Wrong& w) {
      d.error(n.where,
              fmt::format("'{:.60}': {}", rest.substr(0, end == rest.npos ? end : end + 1), w.why));
      return n;
    }
    rest.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

bool has_expression(const Node& scalar) { return scalar.text.find("${") != scalar.text.npos; }

Node substitute(const Node& n, const Scope& scope, Expansion& made, Diagnostics& d) {
  Node out{.kind = n.kind, .where = n.where, .quoted = n.quoted};
  const int64_t bytes = std::ssize(n.text);
  if (d.full() || !made.add({.values = 1, .bytes = bytes}, n.where, d)) return out;
  if (n.kind == Node::Kind::scalar)
    return has_expression(n) ? substitute_scalar(n, scope, made, d) : n;
  out.items.reserve(n.items.size());
  for (const Node& i : n.items) out.items.push_back(substitute(i, scope, made, d));
  out.entries.reserve(n.entries.size());
  for (const Node::Entry& e : n.entries) {
    if (!made.add({.bytes = std::ssize(e.key.value)}, e.key.where, d)) return out;
    out.entries.push_back({e.key, substitute(e.value, scope, made, d)});
  }
  return out;
}

}  // namespace dpt
