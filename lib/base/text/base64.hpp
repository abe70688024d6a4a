#pragma once
// Bytes as base64 or base32 text (RFC 4648). Pure functions, any thread.

#include <string>
#include <string_view>

namespace holdfast::base {

std::string base64_decode(std::string_view text); // what is not base64 is skipped
std::string base64_encode(std::string_view bytes);
std::string base32_encode(std::string_view bytes);

} // namespace holdfast::base
