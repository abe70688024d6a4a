#include "lib/archive/captures.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/utf8.hpp"
#include "lib/s3/client.hpp"
#include "lib/warc/capture.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace holdfast::archive {

namespace {

constexpr std::size_t kMostProblems = 20;

bool is_warc(std::string_view path) {
  return (path.ends_with(".warc.gz") || path.ends_with(".warc")) && base::is_utf8(path);
}

class Collector {
public:
  explicit Collector(Cancelled cancelled) : cancelled_(cancelled) {}

  void read(int file, const std::string& path) {
    struct stat about {};
    if (::fstat(file, &about) != 0) throw_errno(errno, "read", path);
    warc::each_capture(
        file, 0, static_cast<std::uint64_t>(about.st_size),
        [&](const warc::Capture& capture) { return add(capture, path); },
        [&](const warc::Damaged& damage) {
          check_cancelled(cancelled_);
          if (found_.problems.size() < kMostProblems)
            found_.problems.push_back(printable(path) + " at " + std::to_string(damage.offset()) + ": " +
                                      damage.what());
        });
  }

  Captures take() {
    found_.count = rows_.size();
    found_.json = base::json_text(rows_);
    return std::move(found_);
  }

private:
  bool add(const warc::Capture& capture, const std::string& path) {
    check_cancelled(cancelled_);
    if (rows_.size() == kMostCaptures) {
      found_.problems.push_back(printable(path) + ": more than " + std::to_string(kMostCaptures) + " captures");
      return false;
    }
    nlohmann::json row = {{"file", path},
                          {"record_offset", capture.offset},
                          {"record_length", capture.length},
                          {"url_key", capture.key},
                          {"at", capture.date},
                          {"url", capture.url},
                          {"mime", capture.mime},
                          {"digest", capture.digest}};
    if (capture.status >= 100) row["status"] = capture.status;
    rows_.push_back(std::move(row));
    return true;
  }

  Cancelled cancelled_;
  nlohmann::json rows_ = nlohmann::json::array();
  Captures found_;
};

} // namespace

Captures read_captures(const std::filesystem::path& attempt, Cancelled cancelled) {
  Collector collector(cancelled);
  const Fd top = open_own_directory(attempt);
  walk_tree(top.get(), attempt, [&](const TreeEntry& entry) {
    if (!S_ISREG(entry.mode) || !is_warc(entry.path)) return;
    struct stat about {};
    if (const Fd file = open_file_at(entry.directory, entry.name, about)) collector.read(file.get(), entry.path);
  });
  return collector.take();
}

Captures read_captures(const Root& root, const std::string& directory) {
  if (root.bucket() == nullptr) return read_captures(root.path() / directory);
  Collector collector(nullptr);
  for (const auto& object : root.bucket()->list(directory + "/", false).objects)
    if (is_warc(object.key))
      if (const Fd file(root.fetch(object.key)); file)
        collector.read(file.get(), object.key.substr(directory.size() + 1));
  return collector.take();
}

} // namespace holdfast::archive
