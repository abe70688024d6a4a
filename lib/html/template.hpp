#pragma once
// HTML from templates, escaped by type: text that goes into a template is escaped because it is text, Html is not
// because only templates make it. A template is a constant of the program: an .html file that CMake embeds
// (holdfast_embed). Pure; any thread.
//
//   {{name}}                    the value
//   {{#name}} ... {{/name}}     for each item of a list, whose fields come before those outside
//   {{?name}} ... {{/name}}     once if the value is not empty and not false
//   {{^name}} ... {{/name}}     once if it is
//
// A line that holds nothing but one such tag of a section is left out. A name that has no value is a bug and throws:
// a misspelt one cannot show as an empty place.

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::html {

// A constant of the program: an embedded file or a literal.
class Literal {
public:
  template <std::convertible_to<std::string_view> Text>
  consteval Literal(const Text& text) : text_(text) {}
  constexpr std::string_view text() const noexcept { return text_; }

private:
  std::string_view text_;
};

struct Field;
using Fields = std::vector<Field>;

class Html {
public:
  Html() = default;
  Html(Literal literal) : text_(literal.text()) {}

  const std::string& text() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }
  Html& operator+=(const Html& more) {
    text_ += more.text_;
    return *this;
  }

private:
  friend Html escaped(std::string_view text);
  friend Html fill(Literal, const Fields&);
  explicit Html(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

// Escapes text for element content and for attribute values in quotes. Bytes that are not UTF-8, control characters and
// the characters that turn the direction of writing (they can make a name look like another) become U+FFFD.
Html escaped(std::string_view text);

using List = std::vector<Fields>;

class Value {
public:
  Value(Html html);
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text);
  Value(List list);
  template <std::same_as<bool> Bool>
  Value(Bool shown) : value_(shown) {}
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Value(Number number) : Value(std::to_string(number)) {}

  bool empty() const noexcept;

private:
  friend class Filler;
  std::variant<std::string, Html, bool, List> value_;
};

struct Field {
  std::string_view name;
  Value value;
};

// Throws Error(bug) for a name that `fields` does not have, and for a section that does not end.
Html fill(Literal text, const Fields& fields);

} // namespace holdfast::html
