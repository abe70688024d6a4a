#pragma once
// Writes WARC/1.1 with one gzip member per record. Bodies are spooled, because a record begins with its length. Used
// from one thread.

#include "lib/base/file.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/headers.hpp"
#include "lib/warc/spool.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::warc {

struct Exchange {
  std::string url, method{"GET"}, date; // date: "2026-01-31T23:59:59Z", when it was sent
  Headers request_headers;
  std::string request_body;
  bool request_cut{false}; // its body could not be read
  int status{0};
  std::string reason;
  Headers response_headers;
  std::string remote_address, protocol; // protocol: "http/1.1", "h2"
  std::string truncated;                // "length", "time", "disconnect", or empty: it is whole
};

class Writer {
public:
  // Begins `file` with a warcinfo record. Requests are written without the fields of `omitted`. Throws
  // std::runtime_error if it cannot be written.
  Writer(const std::string& file, const std::map<std::string, std::string>& about,
         OmittedHeaders omitted = OmittedHeaders());
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // A response and its request. The second of two equal bodies of one URL becomes a revisit record, and an answer with
  // status 304 one that refers to the first response of the URL.
  // Returns the id of the response's record.
  std::string add(const Exchange& exchange, const Spool& body);
  // A response, and its request, whose payload an earlier record of its URL holds, which is not in this file: it has
  // status 304, or a body of so many bytes and with this digest.
  struct Stored {
    std::string date, digest;
  };
  std::string add_revisit(const Exchange& exchange, const Stored& original, std::uint64_t length);
  // A metadata record beside that response.
  void add_about(const Exchange& exchange, const std::string& response_id, const std::string& content_type,
                 const Spool& body, const std::string& truncated);
  void close(); // flushes to the disk's cache; throws std::runtime_error
  std::uint64_t bytes() const { return written_; }
  std::size_t exchanges() const { return exchanges_; }

private:
  struct Record;
  std::string request_block(const Exchange& exchange) const;
  std::string add(const Exchange& exchange, const Stored* original, const std::string& digest, std::uint64_t length,
                  const Spool* body);
  void write_record(const Record& record, const Spool* body);
  void put(std::string_view bytes);

  const OmittedHeaders omitted_;
  base::Fd file_;
  std::uint64_t written_{0};
  std::size_t exchanges_{0};
  GzipMember member_{6};
  std::string info_id_;
  std::map<std::string, Stored> stored_; // by URL and payload digest; by URL alone, the first one
};

} // namespace holdfast::warc
