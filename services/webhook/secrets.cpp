#include "services/webhook/secrets.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"

#include <nettle/hmac.h>

#include <array>
#include <cstdint>
#include <sstream>
#include <utility>

namespace holdfast::webhook {

namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr std::size_t kLeastKey = 16;

[[noreturn]] void refuse(const std::filesystem::path& file, int line, const std::string& what) {
  throw base::Error(base::ErrorClass::configuration,
                    "webhooks.secret_file: " + file.string() + ":" + std::to_string(line) + ": " + what,
                    "lines SECRET or NAME SECRET, the secret at least 16 characters: "
                    "echo whsec_$(head -c 32 /dev/urandom | base64)");
}

// Empty: not base64.
std::string decoded(const std::string& text) {
  auto bytes = base::base64_decode(text);
  return base::base64_encode(bytes) == text ? bytes : "";
}

} // namespace

Secrets Secrets::read(const std::filesystem::path& file) {
  std::istringstream stream(base::secret_text(file, "webhooks.secret_file"));
  Secrets secrets;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, key, more;
    if (!(words >> name)) continue;
    if (!(words >> key)) std::swap(name, key);
    if (words >> more) refuse(file, number, "more than two words");
    if (key.starts_with(kPrefix)) {
      key = decoded(key.substr(kPrefix.size()));
      if (key.empty()) refuse(file, number, "the text after whsec_ is not base64");
    }
    if (key.size() < kLeastKey) refuse(file, number, "the secret is too short");
    secrets.keys_[name].push_back(key);
  }
  if (secrets.keys_.empty()) refuse(file, number, "no secret found");
  return secrets;
}

std::optional<std::vector<std::string>> Secrets::names() const {
  if (keys_.contains("")) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, keys] : keys_)
    names.push_back(name);
  return names;
}

const std::vector<std::string>& Secrets::of(const std::string& webhook) const {
  static const std::vector<std::string> none;
  auto found = keys_.find(webhook);
  if (found == keys_.end()) found = keys_.find("");
  return found == keys_.end() ? none : found->second;
}

std::string signature(const std::string& key, std::string_view message_id, std::string_view timestamp,
                      std::string_view body) {
  std::string text(message_id);
  ((text += '.') += timestamp) += '.';
  text += body;
  hmac_sha256_ctx context{};
  hmac_sha256_set_key(&context, key.size(), reinterpret_cast<const std::uint8_t*>(key.data()));
  hmac_sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return "v1," + base::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

} // namespace holdfast::webhook
