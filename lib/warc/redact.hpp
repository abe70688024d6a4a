#pragma once
// Takes secrets out of WARC files; the texts around them, see redactor.hpp. Used from one thread.

#include "lib/warc/redactor.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::warc {

// Adds the cookies that the responses of a file set, and the tokens that they gave in JSON, hidden fields and <meta>.
// Throws std::runtime_error.
void learn_secrets(int from, std::uint64_t size, Redactor& redactor);

struct Redacted {
  std::vector<std::string> left_out; // URLs of records whose bodies may hide a secret
  bool bodies{false};                // one of a response had a secret
};

// Writes the records of `from`, plain or packed, to `to`, one gzip member each. Beside the secrets of `redactor` they
// lose cookies and credentials, and the passwords and tokens that a form sent. Bodies lose their codings, in which
// secrets could hide; a body that cannot be decoded, or is unsure, is left out. `documents`: false leaves out PDFs,
// too. Throws std::runtime_error; a record that cannot be read is left out.
Redacted redact(int from, std::uint64_t size, int to, const Redactor& redactor, bool documents = true);

} // namespace holdfast::warc
