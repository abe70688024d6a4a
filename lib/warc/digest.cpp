#include "lib/warc/digest.hpp"

#include "lib/base/base64.hpp"

#include <openssl/evp.h>

#include <stdexcept>

namespace holdfast::warc {

namespace {
EVP_MD_CTX* context_of(void* pointer) { return static_cast<EVP_MD_CTX*>(pointer); }
} // namespace

void Digest::Closer::operator()(void* context) const { EVP_MD_CTX_free(context_of(context)); }

Digest::Digest(Kind kind) : context_(EVP_MD_CTX_new()) {
  const auto* type = kind == Kind::sha1 ? EVP_sha1() : EVP_sha256();
  if (!context_ || EVP_DigestInit_ex(context_of(context_.get()), type, nullptr) != 1)
    throw std::runtime_error("the digest cannot be computed");
}

Digest::Digest(const Digest& other) : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_MD_CTX_copy_ex(context_of(context_.get()), context_of(other.context_.get())) != 1)
    throw std::runtime_error("the digest cannot be computed");
}

Digest::~Digest() = default;

void Digest::add(std::string_view bytes) { EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()); }

std::string Digest::finish() {
  std::string result(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  EVP_DigestFinal_ex(context_of(context_.get()), reinterpret_cast<unsigned char*>(result.data()), &size);
  result.resize(size);
  return result;
}

std::string sha1_text(std::string_view digest) { return "sha1:" + base::base32_encode(digest); }

} // namespace holdfast::warc
