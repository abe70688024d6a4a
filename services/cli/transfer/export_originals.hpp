#pragma once
// Records of snapshots that are not exported, to which revisit records of exported ones refer, or which a browser had
// in its cache: an export holds them, too, in WARC files of their own behind the others. Used from one thread.

#include "lib/archive/root.hpp"
#include "lib/base/file.hpp"
#include "lib/store/capture.hpp"
#include "lib/wacz/writer.hpp"
#include "lib/warc/capture.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::cli {

struct Exported {
  std::size_t snapshots{0}, without_captures{0}, captures{0}, missing{0}, files{0};
  std::uint64_t bytes{0};
};

class Sink {
public:
  virtual ~Sink() = default;
  virtual void warc(const std::string& name, int file, std::uint64_t size) = 0;
  virtual void capture(const warc::Capture& capture) = 0;
  virtual void page(const wacz::WrittenPage& page) = 0;
  virtual void finish() = 0;
};

// Sorts its notes outside of memory: by snapshot, then those of a file together.
class Originals {
public:
  void exported(const std::string& snapshot) { lines_.add(snapshot); }
  void wanted(const store::Capture& original);
  void write(const archive::Root& root, Sink& sink, Exported& told);

private:
  void add(const archive::Root& root, const nlohmann::json& line, Sink& sink, Exported& told);
  void end_file(Sink& sink, Exported& told);

  wacz::SortedLines lines_;
  std::string path_;
  base::Fd source_, file_;
  std::uint64_t source_size_{0}, size_{0};
  std::size_t files_{0};
  std::vector<warc::Capture> captures_;
};

} // namespace holdfast::cli
