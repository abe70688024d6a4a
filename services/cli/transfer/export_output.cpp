#include "services/cli/transfer/export_output.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/s3/client.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <thread>

namespace holdfast::cli {

namespace {

class StandardOutput : public ExportOutput {
public:
  StandardOutput() {
    if (::isatty(STDOUT_FILENO) != 0)
      throw base::Error(base::ErrorClass::usage, "an archive is not written to a terminal", "-o archive.wacz");
  }
  int fd() const override { return STDOUT_FILENO; }
  void keep() override {}
};

// A file that gets its name when it is whole; or a pipe or device, which keeps its own.
class NamedFile : public ExportOutput {
public:
  explicit NamedFile(const std::string& path)
      : path_(std::filesystem::is_regular_file(path) ? std::filesystem::canonical(path).native() : path),
        partial_(std::filesystem::is_other(path) ? path : path_ + ".partial"), kept_(partial_ == path_) {
    file_.reset(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file_) archive::throw_errno(errno, "create", partial_);
  }
  ~NamedFile() override {
    if (!kept_) ::unlink(partial_.c_str());
  }
  int fd() const override { return file_.get(); }
  void keep() override {
    if (kept_) return;
    archive::sync_fd(file_.get(), partial_);
    std::filesystem::rename(partial_, path_);
    kept_ = true;
  }

private:
  const std::string path_, partial_;
  bool kept_;
  base::Fd file_;
};

// What is written goes through a pipe to a thread, which sends it in pieces.
class BucketObject : public ExportOutput {
public:
  BucketObject(s3::Location location, std::string key) : client_(std::move(location)), key_(std::move(key)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) archive::throw_errno(errno, "make", "a pipe");
    from_.reset(ends[0]);
    to_.reset(ends[1]);
    ::signal(SIGPIPE, SIG_IGN); // a store that fails closes the pipe: write() says so
    sender_ = std::thread([this] { send(); });
  }
  ~BucketObject() override { end(); }
  int fd() const override { return to_.get(); }
  void keep() override {
    whole_ = true;
    end();
    if (failure_) std::rethrow_exception(failure_);
  }
  void give_up() override {
    end();
    if (failure_ && !was_left_) std::rethrow_exception(failure_);
  }

private:
  void end() {
    to_.reset();
    if (sender_.joinable()) sender_.join();
  }

  void send() noexcept {
    const std::string type = key_.ends_with(".zip") ? "application/zip" : "application/wacz";
    try {
      client_.put_stream(key_, type, [this](char* buffer, std::size_t room) { return read(buffer, room); });
    } catch (...) {
      failure_ = std::current_exception();
    }
    from_.reset();
  }

  std::size_t read(char* buffer, std::size_t room) {
    for (;;) {
      const auto got = ::read(from_.get(), buffer, room);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) archive::throw_errno(errno, "read", "a pipe");
      if (whole_) return 0;
      was_left_ = true; // the pieces that were sent are dropped
      throw base::Error(base::ErrorClass::temporary, "the export was not finished");
    }
  }

  s3::Client client_;
  const std::string key_;
  base::Fd from_, to_;
  std::atomic<bool> whole_{false};
  bool was_left_{false}; // of the sender, as the next; read after it has ended
  std::exception_ptr failure_;
  std::thread sender_;
};

} // namespace

std::unique_ptr<ExportOutput> open_export_output(const std::string& path) {
  if (path == "-") return std::make_unique<StandardOutput>();
  if (!s3::is_location(path)) return std::make_unique<NamedFile>(path);
  const auto query = path.find('?');
  const auto slash = path.rfind('/', query);
  const auto key = path.substr(slash + 1, query == std::string::npos ? query : query - slash - 1);
  const auto bucket = path.substr(0, slash);
  if (key.empty() || bucket.size() <= std::string_view("s3://").size())
    throw base::Error(base::ErrorClass::usage, path + " names no file in a bucket", "-o s3://BUCKET/archive.wacz");
  return std::make_unique<BucketObject>(
      s3::parse_location(bucket + (query == std::string::npos ? "" : path.substr(query))), key);
}

} // namespace holdfast::cli
