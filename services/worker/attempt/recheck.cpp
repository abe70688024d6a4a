#include "services/worker/attempt/recheck.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/http/client.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/spool.hpp"
#include "lib/warc/writer.hpp"

#include <chrono>
#include <optional>
#include <set>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kTimeForAll{60}, kSilence{15}, kStep{1};
constexpr std::size_t kRequestsAtOnce = 6, kMostBytes = std::size_t{64} << 20;
constexpr int kNoAnswer = 400;

// An answer of the earlier capture, and its request.
struct EarlierAnswer {
  const store::Capture* capture{nullptr};
  warc::Headers request, response;
};

// Throws warc::Damaged.
std::optional<EarlierAnswer> read_answer(const archive::Root& root, const store::Capture& capture,
                                         std::string& open_path, base::Fd& file) {
  if (capture.file != open_path) {
    file = root.open_file(capture.file);
    open_path = capture.file;
  }
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return std::nullopt;
  EarlierAnswer known{&capture, {}, {}};
  warc::Reader reader(file.get(), capture.offset, static_cast<std::uint64_t>(about.st_size));
  const auto record = reader.next();
  const auto head = record ? reader.read_http_head() : std::nullopt;
  if (!head) return std::nullopt;
  known.response = head->headers;
  reader.finish();
  const auto id = warc::header_of(record->headers, "warc-record-id");
  if (const auto next = reader.next();
      next && next->type == "request" && warc::header_of(next->headers, "warc-concurrent-to") == id)
    if (const auto request = reader.read_http_head()) known.request = request->headers;
  return known;
}

// Fields that belong to a connection, a persona or an earlier condition.
bool is_sent_again(const std::string& name) {
  static const std::set<std::string> kNot{"host",   "connection", "content-length", "cookie", "authorization",
                                          "pragma", "range",      "cache-control",  "expect", "user-agent"};
  const auto lowered = base::lower_case(name);
  return !kNot.contains(lowered) && !lowered.starts_with("if-") && !lowered.starts_with("proxy-");
}

class FileCheck {
public:
  FileCheck(const Recheck& work, const std::filesystem::path& warc)
      : work_(work), writer_(warc.native(),
                             {{"date", base::utc_timestamp()},
                              {"format", "WARC File Format 1.1"},
                              {"description", "answers of the site when it was asked whether its files have changed"}},
                             work.omitted) {}

  Rechecked run() {
    for (const auto& capture : work_.captures) {
      if (!seen_.insert(capture.url).second) continue;
      auto known = read_answer(work_.root, capture, open_path_, open_file_);
      if (!known) return {capture.url + ": its record is gone", 0};
      (capture.url == work_.url ? page_ : others_).push_back(std::move(*known));
    }
    ask(page_, 1);
    ask(others_, kRequestsAtOnce);
    writer_.close();
    return done_;
  }

private:
  void ask(const std::vector<EarlierAnswer>& all, std::size_t at_once) {
    for (std::size_t next = 0; done_.differs.empty() && (next < all.size() || batch_.under_way() > 0);) {
      while (next < all.size() && batch_.under_way() < at_once)
        start(all[next++]);
      batch_.step(-1, kStep);
      if (work_.abandoned) throw base::Error(base::ErrorClass::temporary, "its attempt is over");
      if (std::chrono::steady_clock::now() > deadline_)
        done_.differs = work_.url + ": no answers within the time limit";
    }
  }

  // Asks for the whole file: a player shows no page from the record of an answer 304 alone.
  void start(const EarlierAnswer& known) {
    http::Request request;
    request.url = known.capture->url;
    for (const auto& [name, value] : known.request)
      if (is_sent_again(name) && !name.starts_with(':')) request.headers.push_back(name + ": " + value);
    const auto agent = warc::header_of(known.request, "user-agent");
    request.user_agent = agent.empty() ? work_.user_agent : agent;
    request.proxy = work_.proxy;
    request.allow_private = work_.allow_private || !work_.proxy.empty(); // which checks addresses
    request.check_certificates = work_.check_certificates;
    request.silence = kSilence;
    request.connect_timeout = kSilence;
    request.most_bytes = kMostBytes;
    request.abandon = &work_.abandoned;
    const auto headers = request.headers;
    batch_.start(std::move(request), "",
                 [this, &known, headers](const http::Response& answer) { take(known, headers, answer); });
  }

  void take(const EarlierAnswer& known, const std::vector<std::string>& sent, const http::Response& answer) {
    if (!done_.differs.empty()) return;
    const auto& was = *known.capture;
    const auto differs = [&](const std::string& how) { done_.differs = was.url + ": " + how; };
    if (answer.status == 0) return differs(answer.error);
    warc::Exchange exchange;
    exchange.url = was.url;
    exchange.date = base::utc_timestamp();
    exchange.status = answer.status;
    exchange.reason = answer.reason;
    exchange.response_headers = answer.headers;
    for (const auto& line : sent)
      exchange.request_headers.emplace_back(line.substr(0, line.find(':')),
                                            std::string(base::trimmed(line.substr(line.find(':') + 1))));
    if (answer.status != was.status) return differs("status " + std::to_string(answer.status));
    if (answer.header("location") != warc::header_of(known.response, "location"))
      return differs("it leads to " + answer.header("location"));
    auto headers = answer.headers;
    const auto body = answer.truncated ? std::nullopt : warc::plain_body(answer.body, headers, kMostBytes);
    if (!body) return differs("too large");
    const bool same = warc::sha1_of(*body) == was.digest;
    // Browsers read no body of a redirect; an icon that is not there is shown by no page.
    const bool shown = was.status < 300 || (was.status >= kNoAnswer && !was.url.ends_with("/favicon.ico"));
    if (!same && shown) return differs("other bytes");
    ++done_.equal;
    if (same && was.status < 300) {
      writer_.add_revisit(exchange, {was.date, was.digest}, body->size());
      return;
    }
    warc::Spool spool;
    spool.add(*body);
    writer_.add(exchange, spool);
  }

  const Recheck& work_;
  const std::chrono::steady_clock::time_point deadline_{std::chrono::steady_clock::now() + kTimeForAll};
  warc::Writer writer_;
  http::Batch batch_;
  std::set<std::string> seen_;
  std::string open_path_;
  base::Fd open_file_;
  std::vector<EarlierAnswer> page_, others_;
  Rechecked done_;
};

} // namespace

Rechecked recheck(const Recheck& work, const std::filesystem::path& warc) {
  try {
    return FileCheck(work, warc).run();
  } catch (const warc::Damaged& damaged) {
    return {"a record of the earlier capture cannot be read: " + std::string(damaged.what()), 0};
  } catch (const base::Error&) {
    throw;
  } catch (const std::runtime_error& error) { // of the writer
    throw base::Error(base::ErrorClass::cannot_create, error.what());
  }
}

} // namespace holdfast::worker
