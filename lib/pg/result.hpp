#pragma once
// Result of a query, copied out of the driver: rows of named text values. Plain values, movable, usable on any thread.
// Conversions throw Error(bug) with the column's name when a value does not have the requested type.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::pg {

class Result;

// Types that a cell can be read as. Reading NULL throws, but for an array: that is empty.
template <class T>
concept Readable = std::same_as<T, std::string> || std::same_as<T, bool> || std::same_as<T, int> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> || std::same_as<T, double> ||
    std::same_as<T, std::vector<std::string>>; // a one-dimensional SQL text[]

class Cell {
public:
  bool is_null() const noexcept { return !value_->has_value(); }
  template <Readable T>
  T as() const {
    T value{};
    read(value);
    return value;
  }
  template <Readable T>
  operator T() const {
    return as<T>();
  }
  template <Readable T>
  std::optional<T> optional() const {
    return is_null() ? std::nullopt : std::optional<T>(as<T>());
  }
  template <Readable T>
  T value_or(T fallback) const {
    return is_null() ? std::move(fallback) : as<T>();
  }
  std::string value_or(const char* fallback) const { return is_null() ? fallback : as<std::string>(); }

private:
  friend class Row;
  Cell(std::string_view column, const std::optional<std::string>& value) : column_(column), value_(&value) {}
  const std::string& text() const;
  void read(std::string& value) const { value = text(); }
  void read(bool& value) const;
  void read(int& value) const;
  void read(std::int64_t& value) const;
  void read(std::uint64_t& value) const;
  void read(double& value) const;
  void read(std::vector<std::string>& value) const;

  std::string_view column_;
  const std::optional<std::string>* value_;
};

// Refers to its Result.
class Row {
public:
  // The cell of a column; of the only column. Throws Error(bug) if there is none of this name, or more than one.
  Cell operator[](std::string_view column) const;
  Cell value() const;

  bool is_null(std::string_view column) const { return (*this)[column].is_null(); }
  // Returns the text as the server wrote it.
  const std::string& text(std::string_view column) const { return (*this)[column].text(); }
  std::int64_t integer(std::string_view column) const { return (*this)[column]; }
  double number(std::string_view column) const { return (*this)[column]; }
  bool boolean(std::string_view column) const { return (*this)[column]; }

private:
  friend class Result;
  Row(const Result& result, std::size_t index) : result_(&result), index_(index) {}

  const Result* result_;
  std::size_t index_;
};

// Types that users read in another form than PostgreSQL writes them.
enum class Kind { other, time, interval, list }; // timestamptz, interval, text[]

class Result {
public:
  using Cells = std::vector<std::optional<std::string>>;

  Result() = default;
  // Rows that came in another way than from a session, as PostgreSQL writes them.
  Result(std::vector<std::string> columns, std::vector<Kind> kinds, std::vector<Cells> rows)
      : columns_(std::move(columns)), kinds_(std::move(kinds)), rows_(std::move(rows)) {}

  std::size_t size() const noexcept { return rows_.size(); }
  bool empty() const noexcept { return rows_.empty(); }
  Row operator[](std::size_t index) const { return Row(*this, index); }
  // The only row; throws Error(bug) unless there is exactly one.
  Row one() const;
  // The only cell of the only row.
  Cell value() const { return one().value(); }
  // Returns the result of `read` for each row, in order.
  template <class Read>
  auto map(Read read) const {
    std::vector<std::invoke_result_t<Read&, const Row&>> all;
    all.reserve(size());
    for (const Row row : *this)
      all.push_back(read(row));
    return all;
  }
  // A column as a list.
  template <Readable T = std::string>
  std::vector<T> column(std::string_view name) const {
    return map([name](const Row& row) { return row[name].as<T>(); });
  }

  class Iterator {
  public:
    Row operator*() const { return (*result_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

  private:
    friend class Result;
    Iterator(const Result& result, std::size_t index) : result_(&result), index_(index) {}
    const Result* result_;
    std::size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  const std::vector<std::string>& columns() const noexcept { return columns_; }
  std::optional<std::string> cell(std::size_t row, std::size_t column) const { return rows_[row][column]; }
  Kind kind(std::size_t column) const { return kinds_[column]; }
  std::size_t affected_rows() const noexcept { return affected_; }

private:
  friend class Row;
  friend class Connection;
  std::vector<std::string> columns_;
  std::vector<Kind> kinds_;
  std::vector<Cells> rows_;
  std::size_t affected_{0};
};

// Parameters of a query: text or NULL, cast in the SQL. Plain values. NUL bytes and invalid UTF-8 in text are replaced
// by U+FFFD, because the wire would cut the value at the NUL and the server would refuse the rest.
class Params {
public:
  Params() = default;
  template <class... Values>
  static Params of(const Values&... values) {
    Params params;
    (params.add(values), ...);
    return params;
  }

  Params& add(std::nullopt_t);
  Params& add(std::string_view value);
  Params& add(const char* value) { return add(std::string_view(value)); }
  Params& add(const std::string& value) { return add(std::string_view(value)); }
  Params& add(bool value);
  Params& add(double) = delete; // or it would be taken for a bool
  template <std::integral T>
  requires(!std::same_as<T, bool>) Params& add(T value) {
    values_.emplace_back(std::to_string(value));
    return *this;
  }
  template <class T>
  Params& add(const std::optional<T>& value) {
    return value ? add(*value) : add(std::nullopt);
  }
  Params& add(std::chrono::milliseconds value); // an interval
  Params& add(const std::vector<std::string>& values);
  Params& add(const std::vector<std::optional<std::string>>& values);
  Params& add(const std::vector<std::int64_t>& values);

  const std::vector<std::optional<std::string>>& values() const noexcept { return values_; }

private:
  std::vector<std::optional<std::string>> values_;
};

// Valid UTF-8 without NUL: every offending byte becomes U+FFFD.
std::string wire_text(std::string_view text);

} // namespace holdfast::pg
