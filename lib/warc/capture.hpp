#pragma once
// Index entries of records that can be replayed. Values and pure functions, but for each_capture().

#include "lib/warc/reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace holdfast::warc {

struct Capture {
  std::string key;  // of its URL (surt.hpp)
  std::string date; // "2026-01-31T23:59:59Z"
  std::string url;
  std::string mime;   // "warc/revisit" of a revisit record; "unk" if it is not known
  int status{0};      // of HTTP; 0: none
  std::string digest; // of the payload, as "sha1:..."
  std::string file;   // the WARC file
  std::uint64_t offset{0}, length{0};
  std::uint64_t size{0};   // of its block: the message itself
  std::string refers_to{}; // of a revisit record: the key of the URL whose record holds the payload, if it is another
  // Method and body as a query of a request that is not GET, if its record was read (method_query.hpp).
  std::string method{}, request{};
};

// Formats the same time as "20260131235959".
std::string timestamp_of(std::string_view date);
// "2026-01-31T23:59:59Z" without a fraction, in UTC; what a date leaves open is its earliest. Empty: it is no date.
std::string whole_seconds(std::string_view date);

// Calls `found` with each response, revisit and resource of a WARC file, in order, and `damaged` with parts that cannot
// be read. A false from `found` ends it.
void each_capture(int file, std::uint64_t begin, std::uint64_t end, const std::function<bool(Capture)>& found,
                  const std::function<void(const Damaged&)>& damaged);

// "com,example)/ 20260131235959 {...}" without a line end.
std::string cdxj_line(const Capture& capture);
// The object alone; `whole`: with urlkey and timestamp.
std::string cdxj_object(const Capture& capture, bool whole);

// Describes a record in a file of this name, or in one that is open, for holdfast-capture replay. Without its "key", it
// only lends its payload to revisit records.
nlohmann::json replay_record(const Capture& capture, const std::string& file);
nlohmann::json replay_record(const Capture& capture, int file);

// Revisit records that replace responses whose payload is in a record elsewhere. Blocking; any thread.

// Returns true if the record at this offset is a whole response with this payload ("sha1:..."): the digest in its
// header is not used. Returns false for anything else, and for unreadable records.
bool holds_payload(int file, std::uint64_t offset, std::uint64_t length, const std::string& digest);

// Makes a revisit record from a response, or from another revisit record: it keeps all but the body, and refers to
// `original`, which has the same payload. nullopt: the record stays unchanged, because it is not of this kind, or does
// not have the payload that its header names.
std::optional<std::string> revisit_of(int file, const Capture& response, const Capture& original);

} // namespace holdfast::warc
