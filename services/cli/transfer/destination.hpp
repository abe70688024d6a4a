#pragma once
// Destination of an export: a directory, a prefix of a bucket, or a zip file, which may be standard output, a pipe or
// an object of a bucket. Blocking; used from one thread. Without keep(), there is no zip file at the end.

#include "lib/wacz/writer.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::cli {

class Destination {
public:
  virtual ~Destination() = default;
  // `may_be_there`: one of this size is kept, so that an export can go on.
  virtual void add(const std::string& path, int file, std::uint64_t size, bool may_be_there) = 0;
  // All is written.
  virtual void keep() {}
  // Writing has failed. Throws the reason if it is one of this destination's own.
  virtual void give_up() {}
};

// `location`: a directory, or s3://BUCKET/PREFIX.
std::unique_ptr<Destination> open_directory(const std::string& location);

class ZipFile : public Destination {
public:
  // `path`: a file, "-", or "s3://BUCKET/PREFIX/NAME?...", which is sent while it is made.
  explicit ZipFile(const std::string& path);
  ~ZipFile() override;
  wacz::ZipWriter& writer() { return writer_; }
  void add(const std::string& path, int file, std::uint64_t size, bool may_be_there) override;
  void keep() override;
  void give_up() override;

  class Output;

private:
  const std::unique_ptr<Output> output_;
  wacz::ZipWriter writer_;
};

} // namespace holdfast::cli
