#pragma once
// Parameters of a query: text or NULL, cast in the SQL. Plain values. NUL bytes and invalid UTF-8 in text are replaced
// by U+FFFD, because the wire would cut the value at the NUL and the server would refuse the rest.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::pg {

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
