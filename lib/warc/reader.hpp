#pragma once
// Reads a WARC file record by record, plain or with one gzip member per record. Files are untrusted: memory is bounded
// whatever they claim, and unreadable parts are reported with their offset. Does not own the descriptor, which must
// allow pread. Used from one thread.

#include "lib/warc/digest_check.hpp"
#include "lib/warc/headers.hpp"
#include "lib/warc/record_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::warc {

class Damaged : public std::runtime_error {
public:
  enum class Used { no, in_part, whole }; // in_part: a copy of the record needs mend()
  Damaged(std::uint64_t offset, const std::string& what, Used used = Used::no)
      : std::runtime_error(what), offset_(offset), used_(used) {}
  std::uint64_t offset() const noexcept { return offset_; } // of the record in its file
  Used used() const noexcept { return used_; }

private:
  std::uint64_t offset_;
  Used used_;
};

struct Record {
  std::uint64_t offset{0}; // of its first byte in the file
  std::uint64_t length{0}; // of its block, without WARC headers
  std::string type, url;   // WARC-Type, WARC-Target-URI
  bool http{false};        // its block is an HTTP message, by its header
  Headers headers;
};

struct HttpHead {
  int status{0}; // 0: a request
  std::string first_line;
  Headers headers;
  std::string text; // all of it as it is, with the empty line
};

class Reader {
public:
  // Reads the bytes [begin, end) of `file`. Offsets count from `begin`. Digests::compare: blocks and payloads are
  // compared with the digests that their records name; a record that differs is used, and the call of next() after it
  // throws.
  enum class Digests { ignore, compare };
  Reader(int file, std::uint64_t begin, std::uint64_t end, Digests digests = Digests::ignore);

  // The next record; nullopt: there are no more. Throws Damaged; called again after that, it goes on with the next
  // record that can be found. A record that is shorter or longer than its Content-Length, or whose gzip member breaks
  // off, is used as far as it goes; the call after it throws.
  std::optional<Record> next();
  // Reads the record's block on; 0: that was all of it. Throws Damaged.
  std::size_t read(char* out, std::size_t size);
  // All that is left of it, in pieces. Throws Damaged.
  void read_rest(const std::function<void(std::string_view)>& take);
  // Reads the head of an HTTP message from the block of a record that holds one; nullopt: it does not begin so.
  std::optional<HttpHead> read_http_head();
  // Skips what is left of the record and returns how many bytes of the file it takes. Throws Damaged.
  std::uint64_t finish();
  // Returns true if the record that was finished last is shorter than its Content-Length, or its gzip member breaks
  // off.
  bool was_cut() const noexcept { return cut_; }
  // Returns true if each record has a gzip member of its own. Those of a file that was packed as a whole have no place
  // in it.
  static bool has_members(int file, std::uint64_t size);

private:
  [[noreturn]] void damaged(const std::string& what);
  void end_early();
  // Calls `work`, whose failure is the record's.
  template <typename Work>
  auto of_record(Work&& work);
  // Reads lines until an empty one, without their ends, and the whole block as it is. Returns false if it ends, or is
  // too long, before.
  template <typename Line>
  bool read_head(std::uint64_t most, std::string& text, Line&& take);

  RecordBytes bytes_;
  std::uint64_t at_{0}, start_{0};    // where the next record begins; of the record that is open:
  std::uint64_t left_{0}, length_{0}; // of its block
  std::uint64_t head_{0}, wasted_{0}; // bytes of its head; of heads that were none
  bool open_{false}, http_{false};    // http_: of the record that is open
  bool lost_{false};                  // the next record is to be searched for
  bool packed_as_whole_{false};
  bool cut_{false}; // the record ends before its length does, or its gzip member breaks off
  const bool compares_;
  std::optional<RecordDigests> digests_; // of the record that is open
  std::string odd_;                      // what is wrong with the last record, which was used all the same
};

} // namespace holdfast::warc
