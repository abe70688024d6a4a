#pragma once
// What a query returned, copied out of the driver: rows of named text values. Plain values, movable, usable on any
// thread. Conversions throw Error(bug) with the column's name when a value has not the type asked for.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::pg {

class Result;

class Row {
public:
  bool is_null(std::string_view column) const;
  const std::string& text(std::string_view column) const; // throws if NULL
  std::string text_or(std::string_view column, std::string_view fallback) const;
  std::optional<std::string> optional_text(std::string_view column) const;
  std::int64_t integer(std::string_view column) const;
  std::int64_t integer_or(std::string_view column, std::int64_t fallback) const;
  double number(std::string_view column) const;
  bool boolean(std::string_view column) const;
  std::vector<std::string> text_array(std::string_view column) const; // a one-dimensional SQL text[]; NULL array: empty

private:
  friend class Result;
  Row(const Result& result, std::size_t index) : result_(&result), index_(index) {}
  const std::optional<std::string>& value(std::string_view column) const;

  const Result* result_;
  std::size_t index_;
};

// Types that people read in another form than PostgreSQL writes them.
enum class Kind { other, time, interval, list }; // timestamptz, interval, text[]

class Result {
public:
  std::size_t size() const noexcept { return rows_.size(); }
  bool empty() const noexcept { return rows_.empty(); }
  Row operator[](std::size_t index) const { return Row(*this, index); }
  // The only row; throws Error(bug) unless there is exactly one.
  Row one() const;
  const std::vector<std::string>& columns() const noexcept { return columns_; }
  std::optional<std::string> cell(std::size_t row, std::size_t column) const { return rows_[row][column]; }
  Kind kind(std::size_t column) const { return kinds_[column]; }
  std::size_t affected_rows() const noexcept { return affected_; }

private:
  friend class Row;
  friend class Connection;
  std::vector<std::string> columns_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<std::optional<std::string>>> rows_;
  std::size_t affected_{0};
};

} // namespace holdfast::pg
