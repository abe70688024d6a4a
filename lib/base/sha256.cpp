#include "lib/base/sha256.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"

#include <openssl/evp.h>

namespace holdfast::base {

namespace {

EVP_MD_CTX* as_context(const std::unique_ptr<void, void (*)(void*)>& context) {
  return static_cast<EVP_MD_CTX*>(context.get());
}

void check(int answer) {
  if (answer != 1) throw Error(ErrorClass::bug, "libcrypto cannot compute SHA-256");
}

} // namespace

Sha256::Sha256()
    : context_(EVP_MD_CTX_new(), [](void* context) { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context)); }) {
  check(context_ ? EVP_DigestInit_ex(as_context(context_), EVP_sha256(), nullptr) : 0);
}

void Sha256::update(std::string_view bytes) {
  check(EVP_DigestUpdate(as_context(context_), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  check(EVP_DigestFinal_ex(as_context(context_), digest, &length));
  return hex({reinterpret_cast<const char*>(digest), length});
}

std::string sha256_hex(std::string_view text) {
  Sha256 digest;
  digest.update(text);
  return digest.finish();
}

} // namespace holdfast::base
