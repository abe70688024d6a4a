#pragma once
// Compares bytes with the digest that a record names, in the algorithms and spellings that writers use: "sha1:" and
// base32, "sha-256:" and hexadecimal, and so on. Values; used from one thread.

#include "lib/warc/headers.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::warc {

class DigestCheck {
public:
  // nullopt: `named` is empty, or of an unknown algorithm or spelling.
  static std::optional<DigestCheck> of(std::string_view named);
  void start_over();
  void add(std::string_view bytes);
  bool matches() const; // whether all that was added has the digest

private:
  const void* hash_{nullptr}; // a row of nettle's table
  std::string expected_;
  std::vector<std::uint64_t> state_; // aligned as nettle's contexts are
};

// Compares block and payload of a record, whose bytes come in their order. Records that are cut by their nature, and
// payloads that a revisit record does not have, are not compared.
class RecordDigests {
public:
  RecordDigests(const Headers& headers, bool http);
  void add(std::string_view bytes);           // of the block
  void begin_payload(const Headers& of_http); // what is added from now on, is payload
  // The first header whose digest differs; empty: none does.
  std::string_view differs() const;

private:
  std::optional<DigestCheck> block_, payload_;
  bool in_payload_{false};
  bool in_chunks_{false};
  std::string chunks_; // the payload, of which some writers count the chunks and others do not
};

} // namespace holdfast::warc
