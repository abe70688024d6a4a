#include "lib/base/text.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace holdfast::base {

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find_first_of(separators, from), text.size());
    const auto part = text.substr(from, end - from);
    if (const auto first = part.find_first_not_of(kBlanks); first != std::string_view::npos)
      parts.emplace_back(part.substr(first, part.find_last_not_of(kBlanks) - first + 1));
    from = end + 1;
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const auto& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

std::string tail_of(const std::filesystem::path& file, std::size_t bytes) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return {};
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, stream.tellg()));
  std::string text(std::min(size, bytes), '\0');
  stream.seekg(static_cast<std::streamoff>(size - text.size()));
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount())); // it may have been cut meanwhile
  return text;
}

std::string utc_timestamp() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

std::string utc_timestamp(std::chrono::system_clock::time_point time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - second).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06d}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(second)), micros);
}

} // namespace holdfast::base
