#include "lib/wacz/sorted_lines.hpp"

#include "lib/base/error.hpp"
#include "lib/base/write_all.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <queue>

namespace holdfast::wacz {

namespace {

constexpr std::size_t kPiece = 1u << 16;

[[noreturn]] void fail(const char* what) {
  throw base::Error(base::ErrorClass::cannot_create,
                    std::string(what) + " in " + std::filesystem::temp_directory_path().string() + ": " +
                        base::errno_text(errno),
                    "TMPDIR names another directory");
}

// Lines of one run.
class Run {
public:
  explicit Run(int file) : file_(file) { next(); }
  bool over() const { return over_; }
  const std::string& line() const { return line_; }
  void next() {
    line_.clear();
    for (;;) {
      const auto end = piece_.find('\n', at_);
      if (end != std::string::npos) {
        line_.append(piece_, at_, end - at_);
        at_ = end + 1;
        return;
      }
      line_.append(piece_, at_);
      piece_.resize(kPiece);
      const auto got = ::pread(file_, piece_.data(), piece_.size(), offset_);
      if (got < 0) fail("cannot read a file");
      piece_.resize(static_cast<std::size_t>(got));
      offset_ += got;
      at_ = 0;
      over_ = got == 0;
      if (over_) return;
    }
  }

private:
  int file_;
  off_t offset_{0};
  std::size_t at_{0};
  bool over_{false};
  std::string piece_, line_;
};

} // namespace

base::Fd temporary_file() {
  base::Fd file(::open(std::filesystem::temp_directory_path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) fail("cannot create a file");
  return file;
}

void write_all(int file, std::string_view bytes) {
  if (!base::write_all(file, bytes)) fail("cannot write a file");
}

void SortedLines::add(std::string line) {
  held_ += line.size() + sizeof line;
  lines_.push_back(std::move(line));
  if (held_ >= memory_) write_run();
}

void SortedLines::write_run() {
  std::sort(lines_.begin(), lines_.end());
  auto file = temporary_file();
  std::string piece;
  for (const auto& line : lines_) {
    piece += line + "\n";
    if (piece.size() < kPiece) continue;
    write_all(file.get(), piece);
    piece.clear();
  }
  write_all(file.get(), piece);
  runs_.push_back(std::move(file));
  lines_.clear();
  held_ = 0;
}

void SortedLines::each(const std::function<void(const std::string&)>& take) {
  if (runs_.empty()) {
    std::sort(lines_.begin(), lines_.end());
    for (const auto& line : lines_)
      take(line);
    return;
  }
  if (!lines_.empty()) write_run();
  std::vector<std::unique_ptr<Run>> runs;
  for (const auto& file : runs_)
    runs.push_back(std::make_unique<Run>(file.get()));
  const auto later = [](const Run* left, const Run* right) { return left->line() > right->line(); };
  std::priority_queue<Run*, std::vector<Run*>, decltype(later)> next(later);
  for (const auto& run : runs)
    if (!run->over()) next.push(run.get());
  while (!next.empty()) {
    Run* const run = next.top();
    next.pop();
    take(run->line());
    run->next();
    if (!run->over()) next.push(run);
  }
}

} // namespace holdfast::wacz
