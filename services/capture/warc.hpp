#pragma once
// WARC/1.1 with one gzip member per record. Bodies are spooled, because a record begins with its length: small ones in
// memory, larger ones in a file without a name in the current directory. Used from one thread.

#include "services/capture/digest.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::capture {

// The bytes of one body, in memory up to 1 MiB.
class Spool {
public:
  Spool() = default;
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();
  void add(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  std::string payload_digest() const; // raw SHA-1
  // The whole body in pieces, from its start.
  template <typename Take>
  void read(Take&& take) const {
    if (file_ < 0) return take(std::string_view(memory_));
    std::string piece(kPiece, '\0');
    for (std::uint64_t at = 0; at < size_;) {
      const auto count = read_at(at, piece);
      if (count == 0) return;
      take(std::string_view(piece).substr(0, count));
      at += count;
    }
  }
  // At most the first `most` bytes.
  std::string head(std::size_t most) const;

private:
  static constexpr std::size_t kPiece = 1u << 18;
  std::size_t read_at(std::uint64_t offset, std::string& piece) const;

  std::string memory_;
  int file_{-1};
  std::uint64_t size_{0};
  Digest digest_{Digest::Kind::sha1};
};

using Headers = std::vector<std::pair<std::string, std::string>>;

// One request and what was answered.
struct Exchange {
  std::string url, method{"GET"}, date; // date: "2026-01-31T23:59:59Z", when it was sent
  Headers request_headers;
  std::string request_body;
  int status{0};
  std::string reason;
  Headers response_headers;
  std::string remote_address;
  std::string truncated; // "length", "time", "disconnect", or empty: it is whole
};

class WarcWriter {
public:
  // Begins `file` with a warcinfo record. Throws std::runtime_error if it cannot be written.
  WarcWriter(const std::string& file, const std::map<std::string, std::string>& about);
  ~WarcWriter();
  WarcWriter(const WarcWriter&) = delete;
  WarcWriter& operator=(const WarcWriter&) = delete;

  // A response and its request. The second of two equal bodies of one URL becomes a revisit record.
  void add(const Exchange& exchange, const Spool& body);
  void close(); // flushes to the disk's cache; throws std::runtime_error
  std::uint64_t bytes() const { return written_; }
  std::size_t exchanges() const { return exchanges_; }

private:
  struct Record;
  void write_record(const Record& record, const Spool* body);
  void put(std::string_view bytes);

  int file_{-1};
  std::uint64_t written_{0};
  std::size_t exchanges_{0};
  std::string info_id_;
  std::map<std::string, std::string> stored_; // URL and payload digest: the date of the record
};

std::string header_of(const Headers& headers, std::string_view name); // the first; empty: none

} // namespace holdfast::capture
