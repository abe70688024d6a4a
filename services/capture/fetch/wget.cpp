#include "services/capture/fetch/wget.hpp"

#include "lib/base/pidfd.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/fetch/egress.hpp"
#include "services/capture/fetch/fetch.hpp"
#include "services/capture/fetch/wget_log.hpp"
#include "services/capture/replay/replay_source.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr rlim_t kMostMemory = 512 << 20; // of wget

constexpr std::size_t kLargestLog = 32u << 20;
constexpr std::size_t kMostMissing = 50;
constexpr std::size_t kLargestChecked = 64u << 20; // of a body that is decoded to see whether it is whole
constexpr const char* kLog = "wget.log";

// wget cannot refuse private machines by address, only URLs by pattern.
constexpr const char* kPrivateUrls =
    R"(^https?://([^/@]*@)?(localhost|[^/:]*\.localhost|0\.|10\.|127\.|169\.254\.|192\.168\.|172\.(1[6-9]|2[0-9]|3[01])\.)"
    R"(|\[(::|f[cd]|fe[89ab])))";

// Returns the path of wget's output, which holds cookies and passwords. It is outside the archived files, in case that
// we are killed.
fs::path raw_warc() { return fs::absolute(Job::setting("TMP_DIR", "warc")) / ("wget-" + std::to_string(::getpid())); }

std::vector<std::string> arguments(const Job& job, const std::string& program, std::uint64_t limit) {
  std::vector<std::string> result{program,
                                  "--no-config",
                                  std::string("--output-file=") + kLog,
                                  "--server-response",
                                  "--progress=dot:giga",
                                  "--page-requisites",
                                  "--span-hosts",
                                  "--convert-links",
                                  "--backup-converted",
                                  "--adjust-extension",
                                  "--force-directories",
                                  "--restrict-file-names=windows",
                                  "--execute=robots=off",
                                  "--compression=auto",
                                  "--no-hsts",
                                  "--max-redirect=10",
                                  "--tries=2",
                                  "--waitretry=2"};
  result.push_back("--timeout=" + std::to_string(std::clamp(static_cast<int>(job.remaining()), 1, 30)));
  result.push_back("--quota=" + std::to_string(limit));
  if (Job::flag("WGET_WARC", true))
    result.insert(result.end(), {"--warc-file=" + raw_warc().native(), "--no-warc-compression",
                                 "--warc-tempdir=" + raw_warc().parent_path().native(), "--no-warc-keep-log"});
  result.push_back("--user-agent=" + user_agent(job));
  result.push_back("--header=Accept-Language: " + languages());
  if (const auto cookies = Job::setting("COOKIES_FILE"); !cookies.empty())
    result.push_back("--load-cookies=" + cookies);
  if (!Job::flag("CHECK_SSL_VALIDITY", true)) result.emplace_back("--no-check-certificate");
  if (!base::is_private_host(host_in(job.url()))) result.push_back(std::string("--reject-regex=") + kPrivateUrls);
  result.emplace_back("--");
  result.push_back(job.url());
  return result;
}

volatile pid_t child = 0;

struct Ended {
  int status{0};
  bool timed_out{false};
};

Ended run_program(const Job& job, const std::vector<std::string>& command, std::uint64_t limit) {
  std::vector<char*> pointers;
  for (const auto& word : command)
    pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw failed(std::string("cannot start wget: ") + std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    rlimit file{};
    ::getrlimit(RLIMIT_FSIZE, &file);
    file.rlim_cur = std::min<rlim_t>(file.rlim_max, limit);
    ::setrlimit(RLIMIT_FSIZE, &file);
    // Its list of URLs has a copy of the base for each link. A page that needs more has what was fetched before.
    const rlimit memory{kMostMemory, kMostMemory};
    ::setrlimit(RLIMIT_AS, &memory);
    ::setenv("LC_ALL", "C.UTF-8", 1); // its log is read
    if (!egress_proxy().empty()) ::unsetenv("no_proxy");
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  child = pid;
  on_stop = [] {
    if (child > 0) ::kill(child, SIGKILL);
  };
  const base::Fd process = base::open_pidfd(pid);
  const auto in = [](double seconds) { return std::chrono::ceil<std::chrono::milliseconds>(Seconds(seconds)); };
  Ended ended;
  ended.timed_out = !base::wait_for_exit(process, in(job.remaining()));
  if (ended.timed_out) {
    ::kill(pid, SIGTERM);
    if (!base::wait_for_exit(process, in(job.margin() / 4))) ::kill(pid, SIGKILL);
  }
  ::waitpid(pid, &ended.status, 0);
  child = 0;
  return ended;
}

// wget packs everything at the highest level, pictures too, which takes more time than all else that it does.
void pack_warc() {
  std::error_code none;
  const auto raw = raw_warc().native() + ".warc";
  if (!fs::is_regular_file(raw, none)) return;
  warc::pack(raw, "warc/page.warc.gz", warc::OmittedHeaders(Job::setting("WARC_OMIT_HEADERS")));
  fs::remove(raw);
}

// Returns false if the last response for `url` in wget's WARC ends too early; true if it does not, or that is unknown.
// wget reports neither a whole chunked body from one that broke off, nor a whole gzip stream.
bool body_is_whole(const char* path, const std::string& url) {
  const base::Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (!file || error) return true;
  bool whole = true;
  warc::Reader reader(file.get(), 0, size);
  std::string piece(1u << 18, '\0');
  try {
    while (const auto record = reader.next()) {
      if (record->type == "response" && record->url == url)
        if (const auto head = reader.read_http_head()) {
          std::string body;
          for (auto got = reader.read(piece.data(), piece.size()); got > 0 && body.size() < kLargestChecked;
               got = reader.read(piece.data(), piece.size()))
            body.append(piece, 0, got);
          const bool chunked = lower_case(header_of(head->headers, "transfer-encoding")) == "chunked";
          whole = body.size() >= kLargestChecked || !chunked || body.ends_with("0\r\n\r\n");
          if (whole && chunked) body = warc::without_chunks(body);
          if (whole && body.starts_with("\x1f\x8b") && body.size() < kLargestChecked)
            whole = warc::decode_body(std::move(body), "gzip", kLargestChecked).whole;
        }
      reader.finish();
    }
  } catch (const warc::Damaged&) { // as far as it can be read
  }
  return whole;
}

// wget's log is not the whole truth about whether the page is whole.
void check_completeness(WgetExchange& main, std::uint64_t size) {
  if (!main.complete && size > 0 && main.header("content-length") == std::to_string(size) &&
      main.header("content-encoding").empty())
    main.complete = true; // stopped before it logged so, busy with what the page asks for
  if (main.complete && !body_is_whole("warc/page.warc.gz", main.url)) {
    main.complete = false;
    main.error = "the page broke off after " + std::to_string(size) + " bytes";
  }
}

// Returns failed requests, as "404 URL".
Json missing(const std::vector<WgetExchange>& exchanges) {
  std::vector<const WgetExchange*> last; // the last try counts
  for (const auto& exchange : exchanges) {
    if (!exchange.redirect.empty()) continue;
    const auto same = std::find_if(last.begin(), last.end(), [&](const auto* one) { return one->url == exchange.url; });
    if (same == last.end())
      last.push_back(&exchange);
    else
      *same = &exchange;
  }
  Json result = Json::array();
  for (const auto* exchange : last)
    if (!exchange->complete && result.size() < kMostMissing)
      result.push_back((exchange->status != 0 ? std::to_string(exchange->status) : "no answer") + " " +
                       exchange->url.substr(0, 300));
  return result;
}

// Skips wget where the browser has the page. The browser records its traffic, and requests of scripts besides: a second
// copy costs the site every request again. wget is for machines without a browser, for pages that the browser could not
// load, and for those in a coding that may be cut, which it sees and Chromium does not.
void leave_to_browser(const Job& job) {
  const auto page = load_page_record(job);
  const bool answered =
      page && page->status != 0 && (page->ending ? page->ending->status == Status::noresults : page->complete);
  const bool final =
      page && (page->status == 404 || page->status == 410 || has_no_content(page->status)); // for every client
  const bool recorded = (answered && !page->ends_within) || final;
  if (recorded && !Job::flag("WGET_ALWAYS", false))
    throw skipped("the browser has recorded the page (WGET_ALWAYS=true runs wget all the same)");
}

// Refuses redirects to private addresses. wget follows all redirects. Where no proxy of the worker checks each address,
// we first check where the page leads.
void refuse_private_redirects(Job& job) {
  if (!egress_proxy().empty()) return;
  constexpr double kShare = 0.1; // of the time: wget needs the rest
  try {
    if (fetch(job, job.url(), {.head = true, .share = kShare}).status >= kFirstError)
      fetch(job, job.url(), {.share = kShare}); // many servers answer HEAD wrongly
  } catch (const Ending& ending) {
    if (ending.reason.starts_with("refused: ")) throw;
  }
}

} // namespace

Result run_wget(Job& job) {
  leave_to_browser(job);
  const auto program = Job::program("WGET_BINARY", {"wget"}, "wget");
  refuse_private_redirects(job);
  const auto limit = Job::size("WGET_MAX_SIZE", "1g");
  std::error_code ignored;
  fs::create_directories("warc", ignored);
  const auto ended = run_program(job, arguments(job, program, limit), limit);
  pack_warc();
  const auto log = read_file(kLog, kLargestLog);
  auto exchanges = parse_wget_log(log);
  const auto led = main_exchange(exchanges);
  WgetExchange main;
  const auto said = base::trimmed(log); // its last line is why
  main.error = "wget did not start a request: " + std::string(said.substr(said.rfind('\n') + 1));
  if (led > 0) main = exchanges[led - 1];
  std::set<std::string> told;
  Json redirects = Json::array();
  for (std::size_t i = 0; i < led; ++i) {
    const auto& exchange = exchanges[i];
    const bool limited = exchange.status == 429 || exchange.status == 503;
    if (limited && told.insert(host_in(exchange.url)).second)
      job.report_rate_limit(host_in(exchange.url), exchange.status, exchange.header("retry-after"));
    if (i + 1 < led && !exchange.redirect.empty()) {
      job.report_redirect(exchange.url, exchange.redirect, exchange.status);
      redirects.push_back({{"url", exchange.url}, {"status", exchange.status}, {"location", exchange.redirect}});
    }
  }
  const auto url = main.url.empty() ? job.url() : main.url;
  const auto type = main.header("content-type");
  const bool typed = type.find('/') != std::string::npos || main.saved_to.empty();
  job.report_response(url, main.status,
                      typed ? type : formats::sniffed_type(type, read_file(main.saved_to, formats::kSniffed)));
  const auto size = main.saved_to.empty() ? 0 : fs::file_size(main.saved_to, ignored);
  check_completeness(main, ignored || size == static_cast<std::uintmax_t>(-1) ? 0 : size);
  if (led > 0) exchanges[led - 1].complete = main.complete;
  const auto original = main.saved_to + ".orig"; // before the links in it were made local
  const bool converted = !main.saved_to.empty() && fs::is_regular_file(original, ignored);
  job.write_json("page.json", {{"url", url},
                               {"status", main.status},
                               {"reason", main.reason},
                               {"content_type", type},
                               {"headers", joined(main.headers)},
                               {"redirects", redirects},
                               {"path", converted ? original : main.saved_to},
                               {"complete", main.complete}});
  const auto files = std::count_if(exchanges.begin(), exchanges.end(), [](const auto& one) { return one.complete; });
  const Json about = {{"url", main.url},
                      {"status", main.status},
                      {"content_type", type},
                      {"files", files},
                      {"missing", missing(exchanges)}};
  if (WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGXFSZ)
    throw failed("a file is larger than WGET_MAX_SIZE (" + std::to_string(limit) + " bytes); kept its beginning",
                 about);
  if (main.unreachable && main.status == 0) throw unreachable(host_in(main.url) + ": " + main.error, about);
  if (ended.timed_out)
    throw failed("timed out after " + std::to_string(static_cast<long>(job.timeout())) + " s; " +
                     (main.complete
                          ? "the page is whole, not all it shows"
                          : "kept " + std::to_string(main.saved_to.empty() ? 0 : size) + " bytes of the page"),
                 about);
  if (has_no_content(main.status))
    throw failed("the server sent no content (HTTP " + std::to_string(main.status) + ")", about);
  if (main.status >= kFirstError) throw failed("HTTP " + std::to_string(main.status), about);
  if (!main.complete)
    throw failed(
        main.error.empty() ? "wget ended with status " + std::to_string(WEXITSTATUS(ended.status)) : main.error, about);
  return {main.saved_to, about};
}

} // namespace holdfast::capture
