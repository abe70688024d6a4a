#pragma once
// SHA-256 as lower-case hex (libcrypto). Private to lib/pg. Pure; any thread.

#include <string>
#include <string_view>

namespace holdfast::pg {

std::string sha256_hex(std::string_view text);

} // namespace holdfast::pg
