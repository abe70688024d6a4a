#include "lib/pg/result.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::pg {

namespace {

[[noreturn]] void fail(const std::string& message) { throw base::Error(base::ErrorClass::bug, message); }

[[noreturn]] void fail_conversion(std::string_view column, const std::string& text, std::string_view type) {
  fail("column \"" + std::string(column) + "\" holds \"" + text.substr(0, 80) + "\", which is not " +
       std::string(type));
}

template <class Number>
Number parse_number(std::string_view column, const std::string& text, std::string_view type) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) fail_conversion(column, text, type);
  return number;
}

// The output syntax of array_out for one dimension: {a,"b \"c\"",NULL}.
class ArrayReader {
public:
  ArrayReader(std::string_view column, const std::string& text) : column_(column), text_(text) {}

  std::vector<std::string> read() {
    if (text_.size() < 2 || text_.front() != '{' || text_.back() != '}') malformed();
    std::vector<std::string> elements;
    if (text_.size() == 2) return elements;
    at_ = 1;
    while (true) {
      elements.push_back(text_[at_] == '"' ? quoted() : bare());
      if (at_ == text_.size() - 1) return elements;
      if (text_[at_] != ',') malformed();
      ++at_;
    }
  }

private:
  std::string quoted() {
    std::string element;
    for (++at_; at_ < text_.size() - 1; ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return element;
      }
      if (text_[at_] == '\\') ++at_;
      element += text_[at_];
    }
    malformed();
  }

  std::string bare() {
    const std::size_t end = std::min(text_.find(',', at_), text_.size() - 1);
    const std::string element = text_.substr(at_, end - at_);
    if (element.empty() || element == "NULL" || element.find_first_of("{}\"") != std::string::npos) malformed();
    at_ = end;
    return element;
  }

  [[noreturn]] void malformed() const { fail_conversion(column_, text_, "a one-dimensional array without NULLs"); }

  std::string_view column_;
  const std::string& text_;
  std::size_t at_{0};
};

} // namespace

const std::string& Cell::text() const {
  if (!*value_) fail("column \"" + std::string(column_) + "\" is NULL");
  return **value_;
}

void Cell::read(int& value) const { value = parse_number<int>(column_, text(), "an integer"); }
void Cell::read(std::int64_t& value) const { value = parse_number<std::int64_t>(column_, text(), "an integer"); }
void Cell::read(std::uint64_t& value) const {
  value = parse_number<std::uint64_t>(column_, text(), "an integer of 0 or more");
}
void Cell::read(double& value) const { value = parse_number<double>(column_, text(), "a number"); }

void Cell::read(bool& value) const {
  if (text() != "t" && text() != "f") fail_conversion(column_, text(), "a boolean");
  value = text() == "t";
}

void Cell::read(std::vector<std::string>& value) const {
  if (!is_null()) value = ArrayReader(column_, text()).read();
}

Cell Row::operator[](std::string_view column) const {
  const auto& columns = result_->columns_;
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    std::string known;
    for (const auto& name : columns)
      known += (known.empty() ? "" : ", ") + name;
    fail("the result has no column \"" + std::string(column) + "\" (it has: " + known + ")");
  }
  return {*found, result_->rows_.at(index_)[static_cast<std::size_t>(found - columns.begin())]};
}

Cell Row::value() const {
  if (result_->columns_.size() != 1)
    fail("expected exactly one column, got " + std::to_string(result_->columns_.size()));
  return {result_->columns_[0], result_->rows_.at(index_)[0]};
}

Row Result::one() const {
  if (rows_.size() != 1) fail("expected exactly one row, got " + std::to_string(rows_.size()));
  return Row(*this, 0);
}

namespace {

void append_array_element(std::string& literal, std::string_view value) {
  literal += '"';
  for (const char c : wire_text(value)) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  literal += '"';
}

} // namespace

std::string wire_text(std::string_view text) {
  std::string clean = base::repair_utf8(text);
  for (auto at = clean.find('\0'); at != std::string::npos; at = clean.find('\0', at))
    clean.replace(at, 1, base::kReplacement);
  return clean;
}

Params& Params::add(std::nullopt_t) {
  values_.emplace_back(std::nullopt);
  return *this;
}

Params& Params::add(std::string_view value) {
  values_.emplace_back(wire_text(value));
  return *this;
}

Params& Params::add(bool value) {
  values_.emplace_back(value ? "t" : "f");
  return *this;
}

Params& Params::add(std::chrono::milliseconds value) {
  values_.emplace_back(std::to_string(value.count()) + " milliseconds");
  return *this;
}

Params& Params::add(const std::vector<std::string>& values) {
  std::string literal = "{";
  for (const auto& value : values) {
    if (literal.size() > 1) literal += ',';
    append_array_element(literal, value);
  }
  values_.emplace_back(literal + '}');
  return *this;
}

Params& Params::add(const std::vector<std::optional<std::string>>& values) {
  std::string literal = "{";
  for (const auto& value : values) {
    if (literal.size() > 1) literal += ',';
    if (value) {
      append_array_element(literal, *value);
    } else {
      literal += "NULL";
    }
  }
  values_.emplace_back(literal + '}');
  return *this;
}

Params& Params::add(const std::vector<std::int64_t>& values) {
  std::string literal = "{";
  for (const auto value : values) {
    if (literal.size() > 1) literal += ',';
    literal += std::to_string(value);
  }
  values_.emplace_back(literal + '}');
  return *this;
}

} // namespace holdfast::pg
