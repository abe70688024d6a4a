#pragma once
// SHA-256 in hex, of a whole text or piece by piece. Used by this module alone.

#include "lib/base/error.hpp"

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace holdfast::s3 {

class Digest {
public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) fail();
  }
  void update(std::string_view bytes) {
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) fail();
  }
  std::string finish() {
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    if (EVP_DigestFinal_ex(context_.get(), raw, &length) != 1) fail();
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < length; ++i) {
      text += digits[raw[i] >> 4];
      text += digits[raw[i] & 15];
    }
    return text;
  }

private:
  [[noreturn]] static void fail() { throw base::Error(base::ErrorClass::bug, "SHA-256 failed"); }
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

inline std::string sha256_hex(std::string_view text) {
  Digest digest;
  digest.update(text);
  return digest.finish();
}

} // namespace holdfast::s3
