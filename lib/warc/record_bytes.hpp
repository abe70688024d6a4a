#pragma once
// The bytes of a WARC file, or of any file of gzip members, decompressed one record at a time. Does not own the
// descriptor. Used from one thread.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace holdfast::warc {

struct BadBytes : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class RecordBytes {
public:
  RecordBytes(int file, std::uint64_t begin, std::uint64_t end);
  ~RecordBytes();
  RecordBytes(const RecordBytes&) = delete;
  RecordBytes& operator=(const RecordBytes&) = delete;

  std::uint64_t size() const noexcept { return size_; } // of the file
  // Begins a record at this offset: a gzip member if there is one, else plain.
  void open(std::uint64_t offset);
  bool compressed() const noexcept { return compressed_; }
  // Why the record ended before its gzip member did; empty: it did not.
  const std::string& broken() const noexcept { return broken_; }
  // Next byte of the record; -1: its end. Throws BadBytes.
  int get();
  // Up to `size` bytes; 0: its end. Throws BadBytes.
  std::size_t read(char* out, std::size_t size);
  // Returns true if a plain record may end there: the file ends, or the next record begins.
  bool is_end(std::uint64_t offset) const;
  // A plain record ends with the file, or before the next one if that comes first.
  void end_before_next();
  std::uint64_t limit() const noexcept { return limit_; } // where a plain record ends at the latest
  void skip(std::uint64_t count);                         // of a plain record
  std::uint64_t position() const;                         // in the file, after what was taken
  std::uint64_t skip_line_ends(std::uint64_t offset);     // the first other byte
  std::uint64_t find_record(std::uint64_t offset);        // at or after; size(): there is none

private:
  std::size_t fetch(std::uint64_t offset, char* out, std::size_t size) const;
  bool fill();
  void inflate_more();
  bool begins_record(std::uint64_t offset) const;

  const int file_;
  const std::uint64_t begin_, size_;
  bool compressed_{false}, ended_{false};
  z_stream stream_{};
  bool inflating_{false};
  std::uint64_t limit_{0};
  std::uint64_t fetched_{0}; // where the next bytes of the file come from
  std::uint64_t inflated_{0}, deflated_{0};
  std::string broken_;
  std::string input_, output_; // output_: what was decoded and not yet taken begins at at_
  std::size_t at_{0};
};

} // namespace holdfast::warc
