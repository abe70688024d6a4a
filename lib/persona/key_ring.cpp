#include "lib/persona/key_ring.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"

#include <fcntl.h>
#include <nettle/gcm.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

namespace holdfast::persona {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::size_t kKeyId = 8; // digits
constexpr char kForm = '\1';      // then nonce, encrypted text, tag
constexpr std::size_t kAround = 1 + GCM_IV_SIZE + GCM_DIGEST_SIZE;

[[noreturn]] void wrong_file(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorClass::configuration, "persona.key_file: " + file.string() + what,
              "a key of 32 bytes a line, such as `openssl rand -base64 32` prints");
}

// Empty: it is none.
std::string key_bytes(const std::string& line) {
  if (line.size() == 2 * AES256_KEY_SIZE &&
      std::all_of(line.begin(), line.end(), [](char one) { return base::hex_value(one) >= 0; })) {
    std::string bytes;
    for (std::size_t i = 0; i < line.size(); i += 2)
      bytes += static_cast<char>(base::hex_value(line[i]) * 16 + base::hex_value(line[i + 1]));
    return bytes;
  }
  auto bytes = base::base64_decode(line);
  return bytes.size() == AES256_KEY_SIZE && base::base64_encode(bytes) == line ? bytes : "";
}

const std::uint8_t* in(std::string_view bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

void start(gcm_aes256_ctx& context, const std::string& key, std::string_view nonce, const std::string& name,
           std::int64_t version) {
  const auto about = name + "\n" + std::to_string(version);
  gcm_aes256_set_key(&context, in(key));
  gcm_aes256_set_iv(&context, GCM_IV_SIZE, in(nonce));
  gcm_aes256_update(&context, about.size(), in(about));
}

} // namespace

KeyRing KeyRing::open(const std::filesystem::path& key_file) {
  std::istringstream stream(base::secret_text(key_file, "persona.key_file"));
  KeyRing key_ring;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.pop_back();
    if (line.empty()) continue;
    auto bytes = key_bytes(line);
    if (bytes.empty()) wrong_file(key_file, ":" + std::to_string(number) + ": not a key");
    auto id = base::sha256_hex(bytes).substr(0, kKeyId);
    key_ring.keys_.push_back({std::move(id), std::move(bytes)});
  }
  if (key_ring.empty()) wrong_file(key_file, ": no key found");
  return key_ring;
}

void KeyRing::make(const std::filesystem::path& key_file) {
  std::error_code error;
  if (std::filesystem::exists(key_file, error)) return;
  const auto partial = key_file.string() + "." + std::to_string(::getpid());
  const auto text = "# Opens the personas of this collection. Without it they must sign in again.\n" +
                    base::base64_encode(base::random_bytes(AES256_KEY_SIZE)) + "\n";
  const base::Fd file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Another process may make it at the same time: the first name counts, and the file is whole under it.
  bool made = file && base::write_all(file.get(), text) && ::fsync(file.get()) == 0 &&
              (::link(partial.c_str(), key_file.c_str()) == 0 || errno == EEXIST);
  const int problem = errno;
  std::filesystem::remove(partial, error);
  if (!made)
    throw Error(ErrorClass::cannot_create, "cannot write " + key_file.string() + ": " + base::errno_text(problem),
                "check the owner of data_dir");
}

std::vector<std::string> KeyRing::key_ids() const {
  std::vector<std::string> ids;
  for (const auto& key : keys_)
    ids.push_back(key.id);
  return ids;
}

std::string KeyRing::seal(const std::string& name, std::int64_t version, std::string_view plain) const {
  if (empty())
    throw Error(ErrorClass::configuration, "there is no key to encrypt persona \"" + name + "\" with",
                "set persona.key_file here and for the workers");
  const auto nonce = base::random_bytes(GCM_IV_SIZE);
  std::string sealed = kForm + nonce;
  sealed.resize(plain.size() + kAround);
  auto* const out = reinterpret_cast<std::uint8_t*>(sealed.data()) + 1 + GCM_IV_SIZE;
  gcm_aes256_ctx context{};
  start(context, keys_.front().bytes, nonce, name, version);
  gcm_aes256_encrypt(&context, plain.size(), out, in(plain));
  gcm_aes256_digest(&context, GCM_DIGEST_SIZE, out + plain.size());
  return sealed;
}

std::string KeyRing::open(const std::string& name, std::int64_t version, const std::string& key_id,
                          std::string_view sealed) const {
  const auto key = std::find_if(keys_.begin(), keys_.end(), [&](const Key& one) { return one.id == key_id; });
  if (key == keys_.end())
    throw Error(ErrorClass::configuration,
                "no key here opens persona \"" + name + "\", which key " + key_id + " sealed",
                "persona.key_file must hold that key; if it is lost, sign in again or import the persona again");
  std::string plain(sealed.size() < kAround ? 0 : sealed.size() - kAround, '\0');
  std::array<std::uint8_t, GCM_DIGEST_SIZE> tag{};
  bool whole = sealed.size() >= kAround && sealed.front() == kForm;
  if (whole) {
    gcm_aes256_ctx context{};
    start(context, key->bytes, sealed.substr(1, GCM_IV_SIZE), name, version);
    gcm_aes256_decrypt(&context, plain.size(), reinterpret_cast<std::uint8_t*>(plain.data()),
                       in(sealed.substr(1 + GCM_IV_SIZE)));
    gcm_aes256_digest(&context, tag.size(), tag.data());
    whole = std::equal(tag.begin(), tag.end(), in(sealed.substr(sealed.size() - tag.size())));
  }
  if (!whole)
    throw Error(ErrorClass::configuration,
                "the state of persona \"" + name + "\" is not what key " + key_id + " sealed",
                "sign in again, or import the persona again");
  return plain;
}

} // namespace holdfast::persona
