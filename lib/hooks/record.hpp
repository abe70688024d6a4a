#pragma once
// Records that hooks print or leave in urls.jsonl: one JSON object a line, parsed as hostile input, by the
// contract. Values; used on the main thread.

#include "lib/base/text/facts.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::hooks {

inline constexpr std::size_t kMostTags = 100; // of a hook, and of a URL that it found

enum class Status { succeeded, failed, skipped, noresults };
std::string_view to_string(Status status) noexcept;
// Accepts the spellings of the contract (success, succeded, noresult, ...); an unknown word is `failed`.
Status parse_status(std::string_view text) noexcept;

struct ResultRecord {
  Status status{Status::failed};
  std::string output;      // output_str: one line for users, cut at 4 KiB
  std::string output_json; // serialised, cut (dropped) above 64 KiB
  std::string error;       // cut at 4 KiB
};

struct SnapshotRecord { // a discovered URL
  std::string url;      // as printed; not yet validated
  std::string title, bookmarked_at, plugin;
  std::vector<std::string> tags;
};

struct TagRecord {
  std::string name;
};

struct BinaryRecord { // old generation and bus events
  std::string name, path, version, sha256, provider;
};

struct MachineRecord { // old installers patch machine configuration with it
  std::vector<std::pair<std::string, std::string>> config;
};

struct RateLimitRecord { // a site limited requests: {"type":"RateLimit","host":...,"status":429,"retry_after":30}
  std::string host;
  int status{0};
  std::optional<double> retry_after_seconds;
};

struct RedirectRecord { // where the page led: {"type":"Redirect","url":...,"location":...,"status":301}
  std::string location; // as printed; not yet validated
};

struct ResponseRecord { // what the server answered: {"type":"Response","url":...,"status":200,"mime":"text/html"}
  int status{0};
  std::string mime; // lower case, without parameters; "" if it is none
};

struct UnreachableRecord { // no hook can get the page: {"type":"Unreachable","reason":"host: connection refused"}
  std::string reason;
};

// The persona's session has ended: {"type":"SignedOut","reason":"the page led to the login"}. Heard of the plugins that
// got the persona.
struct SignedOutRecord {
  std::string reason;
};

// Facts of the page: {"type":"Facts","resources":14,"theme":"dark"}. Not those that the worker states itself. Also what
// the page requested or names, and how much of that is not in the record, by reason:
// {"type":"Resources","count":14,"missing":{"net::ERR_CONNECTION_REFUSED":2}}
struct FactsRecord {
  base::Facts facts;
};

using Record = std::variant<ResultRecord, SnapshotRecord, TagRecord, BinaryRecord, MachineRecord, RateLimitRecord,
                            RedirectRecord, ResponseRecord, UnreachableRecord, SignedOutRecord, FactsRecord>;

// Source of the lines. A urls.jsonl holds discovered URLs and nothing else, so their "type" may be missing there.
enum class RecordSource { standard_output, urls_file };

// Lines that a hook meant as records, and that nothing reads.
struct UnreadRecords {
  std::size_t records{0}; // JSON objects with a "type" that is unknown, or without the members that it needs
  std::string first;      // the type of the first one
  std::size_t dropped{0}; // lines over 1 MiB, or after the first 100,000 records
  void add(const UnreadRecords& more);
  // Returns "2 records that nothing reads (the first is a Fact)", or "".
  std::string text() const;
};

// Splits a growing stream into lines and parses those that are JSON objects with a known "type". Bounded: a line over 1
// MiB is dropped and counted, after 100,000 records the rest is counted only. Never throws on input. Text in the
// records is valid UTF-8 without NUL; titles, names and messages are also free of control characters.
class RecordReader {
public:
  explicit RecordReader(RecordSource source = RecordSource::standard_output) : source_(source) {}

  // Appends bytes; returns the records they complete.
  std::vector<Record> feed(std::string_view bytes);
  // End of stream: the last line without a newline.
  std::vector<Record> finish();

  bool saw_output() const noexcept { return bytes_ > 0; } // anything at all
  const UnreadRecords& unread() const noexcept { return unread_; }

private:
  void take_line(std::string_view line, std::vector<Record>& out);
  RecordSource source_;
  std::string partial_;
  bool overlong_{false};
  std::uint64_t bytes_{0};
  std::size_t records_{0};
  UnreadRecords unread_;
};

// Discovered URLs by first appearance, one for each URL as printed: of two records the longer title wins, missing
// fields are filled, tags are united.
class DiscoveredUrls {
public:
  void add(SnapshotRecord record);
  const std::vector<SnapshotRecord>& records() const noexcept { return records_; }
  std::vector<SnapshotRecord> take() { return std::move(records_); }

private:
  std::vector<SnapshotRecord> records_;
  std::unordered_map<std::string, std::size_t> index_; // url -> position in records_
};

} // namespace holdfast::hooks
