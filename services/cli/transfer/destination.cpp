#include "services/cli/transfer/destination.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/s3/client.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <exception>
#include <filesystem>
#include <thread>

namespace holdfast::cli {

namespace fs = std::filesystem;

class ZipFile::Output {
public:
  virtual ~Output() = default;
  virtual int fd() const = 0; // to write to
  virtual void keep() {}      // gives it its name
  virtual void give_up() {}
};

namespace {

class Directory : public Destination {
public:
  explicit Directory(const std::string& directory) : directory_(directory) {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (error)
      throw base::Error(base::ErrorClass::cannot_create, "cannot create " + directory + ": " + error.message());
  }
  void add(const std::string& path, int file, std::uint64_t size, bool may_be_there) override {
    const auto target = directory_ / path;
    std::error_code error;
    if (may_be_there && fs::file_size(target, error) == size && !error) return;
    fs::create_directories(target.parent_path());
    const auto partial = target.parent_path() / ("." + target.filename().native() + ".partial");
    const base::Fd copy(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!copy) archive::throw_errno(errno, "create", partial.native());
    archive::copy_body(file, copy.get(), size, partial.native(), nullptr, [](std::string_view) {});
    fs::rename(partial, target);
  }

private:
  const fs::path directory_;
};

class Prefix : public Destination {
public:
  explicit Prefix(const std::string& location) : client_(s3::parse_location(location)) {}
  void add(const std::string& path, int file, std::uint64_t size, bool may_be_there) override {
    if (may_be_there) {
      const auto found = client_.list(path, false).objects;
      if (!found.empty() && found.front().key == path && found.front().size == size) return;
    }
    std::uint64_t at = 0;
    client_.put_stream(path, size, std::string(archive::media_type(path, "")), [&](char* buffer, std::size_t room) {
      const auto got = base::read_at(file, buffer, room, at);
      if (got < 0) archive::throw_errno(errno, "read", path);
      at += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    });
  }

private:
  s3::Client client_;
};

class StandardOutput : public ZipFile::Output {
public:
  StandardOutput() {
    if (::isatty(STDOUT_FILENO) != 0)
      throw base::Error(base::ErrorClass::usage, "an archive is not written to a terminal", "-o archive.wacz");
  }
  int fd() const override { return STDOUT_FILENO; }
};

// A file that gets its name when it is whole; or a pipe or device, which keeps its own.
class NamedFile : public ZipFile::Output {
public:
  explicit NamedFile(const std::string& path)
      : path_(fs::is_regular_file(path) ? fs::canonical(path).native() : path),
        partial_(fs::is_other(path) ? path : path_ + ".partial"), kept_(partial_ == path_) {
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
    fs::rename(partial_, path_);
    kept_ = true;
  }

private:
  const std::string path_, partial_;
  bool kept_;
  base::Fd file_;
};

// Sends output through a pipe to a thread, which uploads it in parts.
class BucketObject : public ZipFile::Output {
public:
  BucketObject(s3::Location location, std::string key) : client_(std::move(location)), key_(std::move(key)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) archive::throw_errno(errno, "make", "a pipe");
    from_.reset(ends[0]);
    to_.reset(ends[1]);
    ::signal(SIGPIPE, SIG_IGN); // a store that fails closes the pipe: write() fails
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

// `path`: a file, "-", or "s3://BUCKET/PREFIX/NAME?...", which is sent while it is made.
std::unique_ptr<ZipFile::Output> open_output(const std::string& path) {
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

} // namespace

std::unique_ptr<Destination> open_directory(const std::string& location) {
  if (s3::is_location(location)) return std::make_unique<Prefix>(location);
  return std::make_unique<Directory>(location);
}

ZipFile::ZipFile(const std::string& path) : output_(open_output(path)), writer_(output_->fd(), std::time(nullptr)) {}
ZipFile::~ZipFile() = default;

void ZipFile::add(const std::string& path, int file, std::uint64_t size, bool) { writer_.add(path, file, size); }

void ZipFile::keep() {
  writer_.close();
  output_->keep();
}

void ZipFile::give_up() { output_->give_up(); }

} // namespace holdfast::cli
