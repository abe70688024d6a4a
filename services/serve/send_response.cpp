#include "services/serve/send_response.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/process/subprocess.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

namespace holdfast::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::string_view kStillHere = ":\n\n";
constexpr std::chrono::seconds kSilence{10}; // between server-sent events
constexpr std::size_t kFilePiece = 128 * 1024;
constexpr int kMostPrograms = 2;                // at once
constexpr std::chrono::minutes kMostThought{5}; // of a program before its first byte, and between others

template <class Reply>
void fill_head(Reply& reply, const Message& message, const Response& response) {
  reply.version(message.version());
  reply.result(response.status);
  reply.set(http::field::server, "holdfast");
  reply.set(http::field::content_type, response.type);
  reply.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers)
    if (is_header_value(value)) reply.set(name, value);
  reply.keep_alive(message.keep_alive());
}

asio::awaitable<bool> send_head(beast::tcp_stream& stream, http::response<http::empty_body>& reply) {
  http::response_serializer<http::empty_body> serializer(reply);
  const auto [error, sent] = co_await http::async_write_header(stream, serializer, asio::as_tuple(asio::use_awaitable));
  co_return !error;
}

// Sends events until the client or the feed ends it; the connection is not used again.
asio::awaitable<bool> send_events(beast::tcp_stream& stream, const Message& message, Response& response,
                                  std::chrono::milliseconds timeout) {
  http::response<http::empty_body> reply;
  fill_head(reply, message, response);
  reply.keep_alive(false);
  if (!co_await send_head(stream, reply) || message.method() == http::verb::head) co_return false;
  const auto timer = std::make_shared<asio::steady_timer>(stream.get_executor());
  const auto silence = [](Watch* watch) { watch->on_news({}); };
  const std::unique_ptr<Watch, decltype(silence)> listening(response.watch.get(), silence);
  // On the connection's strand, so that no news comes between taking and waiting.
  response.watch->on_news(
      [timer, executor = stream.get_executor()] { asio::post(executor, [timer] { timer->cancel(); }); });
  for (bool closed = false; !closed;) {
    const auto messages = response.watch->take(closed);
    for (const auto& one : messages) {
      stream.expires_after(timeout);
      const auto [error, sent] =
          co_await asio::async_write(stream, asio::buffer(*one), asio::as_tuple(asio::use_awaitable));
      if (error) co_return false;
    }
    if (closed || !messages.empty()) continue;
    timer->expires_after(kSilence);
    const auto [interrupted] = co_await timer->async_wait(asio::as_tuple(asio::use_awaitable));
    if (interrupted) continue;
    stream.expires_after(timeout);
    const auto [error, sent] =
        co_await asio::async_write(stream, asio::buffer(kStillHere), asio::as_tuple(asio::use_awaitable));
    if (error) co_return false;
  }
  co_return false;
}

asio::awaitable<bool> send_file(beast::tcp_stream& stream, const Message& message, Response& response,
                                std::chrono::milliseconds timeout) {
  struct stat about {};
  if (::fstat(response.file.get(), &about) != 0) co_return false;
  const auto size = static_cast<std::uint64_t>(about.st_size);
  // A request with If-Range gets the whole file: we give no validators. Only GET has ranges.
  const bool whole = message.count(http::field::if_range) > 0 || message.method() != http::verb::get;
  const auto asked = whole ? std::string() : std::string(message[http::field::range]);
  const auto range = read_range(asked, size);
  http::response<http::empty_body> reply;
  if (range.what != ByteRange::What::whole) response.status = range.what == ByteRange::What::part ? 206 : 416;
  fill_head(reply, message, response);
  reply.set(http::field::accept_ranges, "bytes");
  if (range.what == ByteRange::What::part)
    reply.set(http::field::content_range, "bytes " + std::to_string(range.begin) + "-" + std::to_string(range.end - 1) +
                                              "/" + std::to_string(size));
  if (range.what == ByteRange::What::none) reply.set(http::field::content_range, "bytes */" + std::to_string(size));
  reply.content_length(range.end - range.begin);
  if (!co_await send_head(stream, reply)) co_return false;
  // A large file may take its time, as long as it moves.
  std::string piece(kFilePiece, '\0');
  for (auto at = range.begin; message.method() != http::verb::head && at < range.end;) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), range.end - at));
    const auto got = base::read_at(response.file.get(), piece.data(), most, at);
    if (got <= 0) co_return false;
    stream.expires_after(timeout);
    const auto [body_error, more] = co_await asio::async_write(
        stream, asio::buffer(piece.data(), static_cast<std::size_t>(got)), asio::as_tuple(asio::use_awaitable));
    if (body_error) co_return false;
    at += static_cast<std::uint64_t>(got);
  }
  co_return true;
}

asio::awaitable<bool> send_body(beast::tcp_stream& stream, const Message& message, Response& response) {
  const bool head = message.method() == http::verb::head;
  http::response<http::string_body> reply;
  fill_head(reply, message, response);
  const auto size = response.body.size();
  if (!head) reply.body() = std::move(response.body);
  reply.content_length(size);
  if (response.status == 304 || !response.program.empty()) reply.erase(http::field::content_length);
  http::response_serializer<http::string_body> serializer(reply);
  if (head) {
    const auto [error, sent] =
        co_await http::async_write_header(stream, serializer, asio::as_tuple(asio::use_awaitable));
    co_return !error;
  }
  const auto [error, sent] = co_await http::async_write(stream, serializer, asio::as_tuple(asio::use_awaitable));
  co_return !error;
}

// One of the programs that run; false if too many do.
class ProgramPlace {
public:
  ProgramPlace() : taken_(running_.fetch_add(1) < kMostPrograms) {}
  ~ProgramPlace() { running_.fetch_sub(1); }
  ProgramPlace(const ProgramPlace&) = delete;
  ProgramPlace& operator=(const ProgramPlace&) = delete;
  explicit operator bool() const noexcept { return taken_; }

private:
  static inline std::atomic<int> running_{0};
  bool taken_;
};

// Returns what to say of a program that has written nothing.
Response nothing_written(std::string_view target, int code) {
  if (code == base::kExitFailedWork) return refusal(target, 404, "not_found", "there is nothing to export");
  return refusal(target, 500, "bug", "the export failed; see the log of holdfast serve");
}

// Sends what a program writes, as it comes. The program ends with the connection. If it fails on the way, the
// connection is closed without the mark of the end, so that no client takes the half for the whole.
asio::awaitable<bool> send_output(beast::tcp_stream& stream, const Message& message, Response& response,
                                  std::chrono::milliseconds timeout) {
  using namespace asio::experimental::awaitable_operators;
  const std::string_view target(message.target().data(), message.target().size());
  const ProgramPlace place;
  int ends[2] = {-1, -1};
  if (!place || ::pipe2(ends, O_CLOEXEC) != 0) {
    auto busy = too_many(target, std::chrono::seconds(30));
    co_return co_await send_body(stream, message, busy);
  }
  asio::posix::stream_descriptor output(stream.get_executor(), ends[0]);
  base::Fd input(ends[1]);
  process::Subprocess program(stream.get_executor(), response.program, input.get());
  input.reset();
  asio::steady_timer late(stream.get_executor());
  const bool chunked = message.version() > 10;
  bool begun = false;
  for (std::string piece(kFilePiece, '\0');;) {
    late.expires_after(kMostThought);
    const auto read = co_await (output.async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable)) ||
                                late.async_wait(asio::as_tuple(asio::use_awaitable)));
    if (read.index() != 0) co_return false;
    const auto [read_error, got] = std::get<0>(read);
    if (read_error) break;
    stream.expires_after(timeout);
    if (!begun) {
      http::response<http::empty_body> reply;
      fill_head(reply, message, response);
      reply.chunked(chunked);
      if (!chunked) reply.keep_alive(false);
      if (!co_await send_head(stream, reply)) co_return false;
      begun = true;
    }
    const auto bytes = asio::buffer(piece.data(), got);
    boost::system::error_code error; // not by ?:, see send_response()
    if (chunked)
      co_await asio::async_write(stream, http::make_chunk(bytes), asio::redirect_error(asio::use_awaitable, error));
    else
      co_await asio::async_write(stream, bytes, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return false;
  }
  late.expires_after(kMostThought);
  const auto ended = co_await (program.wait() || late.async_wait(asio::as_tuple(asio::use_awaitable)));
  const int code = ended.index() == 0 ? std::get<0>(ended).code : -1;
  stream.expires_after(timeout);
  if (!begun) {
    auto nothing = nothing_written(target, code);
    co_return co_await send_body(stream, message, nothing);
  }
  const bool whole = code == base::kExitSuccess || code == base::kExitFailedWork; // files were missing: it names them
  if (!whole) spdlog::warn("{}: the export ended with status {}", target, code);
  if (!whole || !chunked) co_return false;
  const auto [error, sent] =
      co_await asio::async_write(stream, http::make_chunk_last(), asio::as_tuple(asio::use_awaitable));
  co_return !error;
}

} // namespace

asio::awaitable<bool> send_response(beast::tcp_stream& stream, const Message& message, Response& response,
                                    std::chrono::milliseconds timeout) {
  stream.expires_after(timeout);
  // Not by ?:, because g++ 12 destroys an awaited conditional twice.
  if (response.file) co_return co_await send_file(stream, message, response, timeout);
  if (!response.program.empty() && message.method() != http::verb::head)
    co_return co_await send_output(stream, message, response, timeout);
  if (response.watch) co_return co_await send_events(stream, message, response, timeout);
  co_return co_await send_body(stream, message, response);
}

} // namespace holdfast::serve
