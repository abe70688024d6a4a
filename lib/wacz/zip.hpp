#pragma once
// Writes a zip file with stored entries to a descriptor, which may be a pipe; with zip64 where it is needed
// (libarchive). Does not own the descriptor. Used from one thread. The destructor leaves an unfinished file unfinished.

#include "lib/base/sha256.hpp"

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::wacz {

class ZipWriter {
public:
  ZipWriter(int file, std::time_t time); // `time`: of all entries
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  // Adds the first `size` bytes of a file, or a text, and returns the SHA-256 of them. Throws Error(input_output) if
  // there are not so many.
  std::string add(const std::string& path, int file, std::uint64_t size);
  std::string add(const std::string& path, std::string_view text);
  void close();

private:
  void begin(const std::string& path, std::uint64_t size);
  void write(std::string_view bytes);
  std::string end();
  [[noreturn]] void fail(const std::string& what);
  std::unique_ptr<void, void (*)(void*)> archive_;
  std::time_t time_;
  std::string path_;
  std::uint64_t left_{0};
  base::Sha256 digest_;
};

} // namespace holdfast::wacz
