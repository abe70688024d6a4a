#include "lib/base/text/encoding.hpp"

#include "lib/base/text/text.hpp"

#include <array>
#include <cstdint>

namespace holdfast::base {

namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> base64_values() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values)
    value = -1;
  for (std::size_t i = 0; i < kBase64.size(); ++i)
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
  return values;
}

// Digits of `width` bits each, filled up with "=" to a multiple of `group`.
std::string encode(std::string_view bytes, std::string_view digits, int width, std::size_t group) {
  const auto most = digits.size() - 1;
  std::string result;
  result.reserve((bytes.size() * 8 / static_cast<std::size_t>(width) / group + 1) * group);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(letter);
    for (count += 8; count >= width; count -= width)
      result += digits[bits >> (count - width) & most];
  }
  if (count > 0) result += digits[bits << (width - count) & most];
  while (result.size() % group != 0)
    result += '=';
  return result;
}

} // namespace

std::string base64_decode(std::string_view text) {
  static constexpr auto kValues = base64_values();
  const auto value_at = [&](std::size_t at) -> int { return kValues[static_cast<unsigned char>(text[at])]; };
  std::string result(text.size() / 4 * 3 + 3, '\0');
  std::size_t size = 0;
  std::uint32_t bits = 0;
  int count = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (count == 0 && text.size() - at >= 4) { // the usual: four letters that make three bytes
      const int a = value_at(at), b = value_at(at + 1), c = value_at(at + 2), d = value_at(at + 3);
      if ((a | b | c | d) >= 0) {
        const int all = a << 18 | b << 12 | c << 6 | d;
        result[size] = static_cast<char>(all >> 16);
        result[size + 1] = static_cast<char>(all >> 8 & 255);
        result[size + 2] = static_cast<char>(all & 255);
        size += 3;
        at += 4;
        continue;
      }
    }
    const int value = value_at(at++);
    if (value < 0) continue;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    result[size++] = static_cast<char>(bits >> count & 255);
  }
  result.resize(size);
  return result;
}

std::string base64_encode(std::string_view bytes) { return encode(bytes, kBase64, 6, 4); }

std::string base32_encode(std::string_view bytes) { return encode(bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, 8); }

std::string percent_encode_invalid_utf8(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (std::size_t i = 0; i < name.size();) {
    if (const std::size_t length = utf8_length(name.substr(i)); length > 0) {
      out += name.substr(i, length);
      i += length;
    } else {
      append_percent(out, name[i]);
      ++i;
    }
  }
  return out;
}

} // namespace holdfast::base
