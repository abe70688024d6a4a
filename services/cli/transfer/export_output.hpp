#pragma once
// Where an export goes that is one file: a file, standard output, or an object of a bucket. Blocking; used from one
// thread. Without keep(), nothing is there at the end.

#include "lib/s3/location.hpp"

#include <memory>
#include <string>

namespace holdfast::cli {

class ExportOutput {
public:
  virtual ~ExportOutput() = default;
  // To write to.
  virtual int fd() const = 0;
  // All is written: gives it its name.
  virtual void keep() = 0;
  // Writing has failed. Throws the reason if it is one of this output's own.
  virtual void give_up() {}
};

// `path`: a file, "-", or "s3://BUCKET/PREFIX/NAME?...", which is sent while it is made.
std::unique_ptr<ExportOutput> open_export_output(const std::string& path);

} // namespace holdfast::cli
