#include "services/cli/transfer/export_originals.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/text/json.hpp"
#include "lib/warc/gzip.hpp"

#include <iostream>
#include <optional>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::uint64_t kEnough = std::uint64_t{256} << 20; // of one file, which is made in a temporary one
constexpr std::size_t kMostHeld = 20000;                    // captures of one file

// A record, which may be as large as a video, to the end of another file, as a gzip member. Returns its length there.
std::uint64_t append_member(int from, const warc::Capture& record, int to) {
  std::uint64_t length = 0;
  const auto put = [&](std::string_view bytes) {
    wacz::write_all(to, bytes);
    length += bytes.size();
  };
  std::optional<warc::GzipMember> member; // of a record in a plain file
  bool first = true;
  archive::read_range(from, record.offset, record.offset + record.length, record.file, [&](std::string_view piece) {
    if (std::exchange(first, false) && !piece.starts_with("\x1f\x8b")) member.emplace(Z_DEFAULT_COMPRESSION);
    member ? member->add(piece, put) : put(piece);
  });
  if (member) member->add("", put, true);
  return length;
}

} // namespace

void Originals::wanted(const store::Capture& original) {
  lines_.add(original.snapshot_id + " " +
             base::json_text(nlohmann::ordered_json{{"file", original.file},
                                                    {"offset", original.offset},
                                                    {"length", original.length},
                                                    {"key", original.key},
                                                    {"date", original.date},
                                                    {"url", original.url},
                                                    {"mime", original.mime},
                                                    {"status", original.status},
                                                    {"digest", original.digest}}));
}

void Originals::write(const archive::Root& root, Sink& sink, Exported& told) {
  std::string before, exported;
  lines_.each([&](const std::string& line) {
    if (line == before) return;
    before = line;
    const auto blank = line.find(' ');
    if (blank == std::string::npos)
      exported = line;
    else if (line.compare(0, blank, exported) != 0)
      add(root, nlohmann::json::parse(line.substr(blank + 1)), sink, told);
  });
  end_file(sink, told);
}

void Originals::add(const archive::Root& root, const nlohmann::json& line, Sink& sink, Exported& told) {
  warc::Capture record{line["key"],    line["date"], line["url"],    line["mime"],  line["status"],
                       line["digest"], line["file"], line["offset"], line["length"]};
  if (record.file != path_) {
    path_ = record.file;
    source_ = root.open_file(path_);
    source_size_ = source_ ? archive::file_size(source_.get(), path_) : 0;
  }
  if (!source_ || record.offset + record.length > source_size_) {
    ++told.missing;
    std::cerr << "missing  " << record.file << "\n";
    return;
  }
  if (!file_) file_ = wacz::temporary_file();
  record.length = append_member(source_.get(), record, file_.get());
  record.file = "originals-" + std::to_string(files_ + 1) + ".warc.gz";
  record.offset = size_;
  size_ += record.length;
  captures_.push_back(std::move(record));
  if (size_ >= kEnough || captures_.size() >= kMostHeld) end_file(sink, told);
}

void Originals::end_file(Sink& sink, Exported& told) {
  if (captures_.empty()) return;
  sink.warc(captures_.front().file, file_.get(), size_);
  for (const auto& capture : captures_)
    sink.capture(capture);
  told.captures += captures_.size();
  told.bytes += size_;
  captures_.clear();
  file_.reset();
  size_ = 0;
  ++files_;
}

} // namespace holdfast::cli
