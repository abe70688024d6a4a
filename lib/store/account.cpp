#include "lib/store/account.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/store/call.hpp"
#include "lib/store/token.hpp"

#include <crypt.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace holdfast::store {

namespace {

constexpr const char* kMethod = "$y$"; // yescrypt, with the cost that the library recommends
constexpr std::size_t kShortest = 10, kLongest = 500;

// Empty: the password cannot be hashed so.
std::string hashed(const std::string& password, const std::string& setting) {
  const auto data = std::make_unique<crypt_data>();
  const char* const hash = crypt_r(password.c_str(), setting.c_str(), data.get());
  return hash == nullptr || *hash == '*' ? "" : hash;
}

std::string new_setting() {
  const std::unique_ptr<char, decltype(&std::free)> setting(crypt_gensalt_ra(kMethod, 0, nullptr, 0), &std::free);
  if (!setting) throw base::Error(base::ErrorClass::configuration, "libcrypt of this machine has no yescrypt");
  return setting.get();
}

std::string new_hash(const std::string& password) {
  const bool control = std::any_of(password.begin(), password.end(), [](unsigned char c) { return c < ' '; });
  if (password.size() < kShortest || password.size() > kLongest || control)
    throw base::Error(base::ErrorClass::usage, "the password of an account has 10 to 500 bytes, no control characters");
  const auto hash = hashed(password, new_setting());
  if (hash.empty()) throw base::Error(base::ErrorClass::configuration, "libcrypt of this machine has no yescrypt");
  return hash;
}

} // namespace

bool account_set(pg::Connection& connection, const std::string& name, const std::string& role,
                 const std::string& password, const std::string& by) {
  return call_for<bool>(connection, "account_set", name, role, new_hash(password), by);
}

bool account_change(pg::Connection& connection, const std::string& name, const std::string& hash,
                    const std::string& password, const std::string& by) {
  return call_for<bool>(connection, "account_change", name, hash, new_hash(password), by);
}

AccountAsked account_ask(pg::Connection& connection, const std::string& name, const std::string& peer) {
  const auto rows = call(connection, "account_ask", name, peer);
  const auto row = rows.one();
  return {std::chrono::seconds(row["wait"].value_or<std::int64_t>(0)), row["hash"].value_or("")};
}

bool password_fits(const std::string& hash, const std::string& password) {
  static const auto kNobody = new_setting();
  if (password.size() > kLongest || password.find('\0') != std::string::npos) return false;
  const auto found = hashed(password, hash.empty() ? kNobody : hash);
  unsigned differ = hash.empty() || found.size() != hash.size() ? 1 : 0;
  for (std::size_t i = 0; i < std::min(found.size(), hash.size()); ++i)
    differ |= static_cast<unsigned char>(found[i] ^ hash[i]);
  return differ == 0;
}

std::optional<std::string> account_enter(pg::Connection& connection, const std::string& name, const std::string& peer,
                                         const std::string& hash, const std::string& session,
                                         std::chrono::milliseconds keep, const std::string& by) {
  auto token = new_token();
  const bool entered =
      call(connection, "account_enter", name, peer, hash, session, base::sha256_hex(token), keep, by).value();
  return entered ? std::optional(token) : std::nullopt;
}

} // namespace holdfast::store
