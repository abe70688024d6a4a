#include "services/serve/files.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/html/parts.hpp"
#include "lib/s3/location.hpp"
#include "lib/store/call.hpp"
#include "lib/store/token.hpp"
#include "services/serve/connections.hpp"
#include "services/serve/share.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace holdfast::serve {

namespace {

constexpr std::size_t kKeyLength = 32;

// Opens below `directory`, whatever links lie there: the kernel refuses every step that would leave it.
int open_beneath(int directory, const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0; tries < 10; ++tries) {
    const long file = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (file >= 0) return static_cast<int>(file);
    if (errno != EAGAIN && errno != EINTR) break; // EAGAIN: a concurrent rename
  }
  return -1;
}

// Returns true for <yyyy>/<mm>/... and crawls/...; not for the sentinel and unfinished publications.
bool is_published(std::string_view path) {
  if (path.find("//") != std::string_view::npos) return false;
  for (std::string_view rest = path; !rest.empty();) {
    const auto slash = std::min(rest.find('/'), rest.size());
    const auto part = rest.substr(0, slash);
    if (part == "." || part == "..") return false;
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  if (path.starts_with("crawls/") || path.starts_with("kept/")) return true;
  const auto digit = [&](std::size_t at) { return path[at] >= '0' && path[at] <= '9'; };
  return path.size() > 8 && digit(0) && digit(1) && digit(2) && digit(3) && path[4] == '/' && digit(5) && digit(6) &&
         path[7] == '/';
}

Response refusal(unsigned status, std::string text) {
  return plain(status, std::move(text)).with("Content-Security-Policy", "sandbox; default-src 'none'");
}

// Returns a file with its type and policy. It has an origin of its own (another port) and no scripts, forms, cookies or
// storage on top: a document here has no identity. Nothing is fetched from elsewhere, so that the site of an archived
// page does not notice its display. A PDF is not sandboxed: browsers refuse to show it then, and its viewer is no part
// of this origin.
Response described(std::string type) {
  Response response;
  response.type = std::move(type);
  const auto header = [&](const char* name, const char* value) { response.headers.emplace_back(name, value); };
  header("Content-Security-Policy",
         response.type == "application/pdf"
             ? "default-src 'none'; object-src 'self'; plugin-types application/pdf"
             : "sandbox allow-popups; default-src 'self' data: blob:; style-src 'self' data: 'unsafe-inline'; "
               "frame-src 'self'; object-src 'self'; "
               "script-src 'none'; connect-src 'none'; form-action 'none'; base-uri 'none'");
  if (response.type.starts_with("text/") && response.type.find("charset") == std::string::npos &&
      !response.type.starts_with("text/html"))
    response.type += "; charset=utf-8";
  header("Referrer-Policy", "no-referrer");
  header("X-DNS-Prefetch-Control", "off"); // browsers look up the hosts of links in a page of http
  // Thumbnails: browsers call no two ports of an IP address one site.
  header("Cross-Origin-Resource-Policy", "cross-origin");
  header("Cross-Origin-Opener-Policy", "same-origin");
  header("Cache-Control", "private, max-age=3600");
  return response;
}

// A document that opens no connection; one that may hide how is shown as text.
Response quiet(Response response, const std::string& path) {
  struct stat about {};
  if (response.file && ::fstat(response.file.get(), &about) != 0) return refusal(503, "the archive does not answer\n");
  const auto size = response.file ? static_cast<std::uint64_t>(about.st_size) : response.body.size();
  constexpr std::uint64_t kLargest = std::uint64_t{64} << 20;
  const bool document = response.type.starts_with("text/html") || response.type.starts_with("text/xml") ||
                        response.type.starts_with("application/xml") || response.type.find("+xml") != std::string::npos;
  if (!document) return response;
  if (response.file && size <= kLargest) response.body = archive::read_rest(response.file.get(), path);
  if (size > kLargest || hides_tags(response.body)) {
    response.body.clear();
    response.type = "text/plain";
    return response;
  }
  response.file.reset();
  response.body = quiet_markup(std::move(response.body));
  return response;
}

} // namespace

// Keys of tokens, and whether they were valid when they were last looked up; keys of users, and when each was given.
class Files::Keys {
public:
  explicit Keys(Connections& connections) : connections_(connections) {}
  bool valid(const std::string& key) {
    const auto now = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      if (const auto given = users_.find(key); given != users_.end() && now - given->second < kOfUser) return true;
      if (const auto found = known_.find(key); found != known_.end() && now - found->second.second < kTrusted)
        return found->second.first;
    }
    const bool valid = connections_.with(
        [&](pg::Connection& connection) { return store::call_for<bool>(connection, "files_key_valid", key); });
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMost) known_.clear();
    known_[key] = {valid, now};
    return valid;
  }
  std::string of_user(const std::string& user) {
    auto key = base::sha256_hex(secret_ + "\n" + user).substr(0, kKeyLength);
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    if (users_.size() >= kMost) std::erase_if(users_, [&](const auto& one) { return now - one.second >= kOfUser; });
    users_[key] = now;
    return key;
  }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kTrusted{5};
  static constexpr std::chrono::hours kOfUser{24};
  static constexpr std::size_t kMost = 1000;
  const std::string secret_{base::random_hex32()};
  std::map<std::string, Clock::time_point> users_;
  Connections& connections_;
  std::mutex mutex_;
  std::map<std::string, std::pair<bool, Clock::time_point>> known_;
};

Files::Files(const std::filesystem::path& root, const std::string& collection_id, const std::string& dsn, bool keys,
             std::vector<std::string> hosts)
    : directory_(root), connections_(std::make_unique<Connections>(dsn)), hosts_(std::move(hosts)) {
  if (keys) keys_ = std::make_unique<Keys>(*connections_);
  if (s3::is_location(root.native()))
    bucket_ = std::make_unique<archive::Root>(archive::Root::open(root, collection_id, false));
}

Files::~Files() = default;

std::string Files::key_of_user(const std::string& user) const { return keys_ ? keys_->of_user(user) : ""; }

std::string Files::href(const std::string& path, const std::string& key) const {
  return (keys_ || key.starts_with(kShare) ? "/" + key + "/" : "/") + base::percent_encode(path);
}

Response Files::answer(const Request& request) const {
  if (!is_named(hosts_, request))
    return refusal(403, "ask for these files by their address, or add this name to serve.hosts\n");
  std::string path = request.path.substr(1), key;
  if (path.starts_with(kShare)) return shared(request, path);
  if (keys_) {
    key = path.substr(0, kKeyLength);
    if (path.size() <= kKeyLength || path[kKeyLength] != '/' || !keys_->valid(key))
      return refusal(403, "this address is not valid, or no longer; come by way of the page\n");
    path.erase(0, kKeyLength + 1);
  }
  return file(std::move(path), key);
}

Response Files::shared(const Request& request, const std::string& path) const {
  const auto at = shared_path(path);
  std::optional<std::string> page;
  const bool shown = at && connections_->with([&](pg::Connection& connection) {
    page = shared_page(connection, *at, *this, request);
    return page || shares_file(connection, *at);
  });
  // One answer, whether there never was such a link, it is over, or it does not show this.
  if (!shown) return refusal(404, "this link is not valid, or no longer, or does not show this\n");
  auto response = page ? described("text/html; charset=utf-8") : file(at->rest, at->link);
  if (page) response.body = std::move(*page);
  for (auto& [name, value] : response.headers)
    if (name == "Cache-Control") value = "no-store"; // it may be revoked
  response.headers.emplace_back("X-Robots-Tag", "noindex");
  return response;
}

Response Files::file(std::string path, const std::string& key) const {
  base::Fd file;
  try {
    if (const auto at = record_path(path)) return record(*at);
    if (!is_published(path)) return refusal(404, "there is no such file\n");
    if (path.ends_with('/')) path += "index.html";
    file = open(path);
  } catch (const base::Error& error) {
    spdlog::warn("{}", error.what());
    return refusal(503, "the archive does not answer\n");
  }
  if (!file) return refusal(404, "there is no such file\n");
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    if (!S_ISDIR(about.st_mode)) return refusal(404, "there is no such file\n");
    return refusal(301, "").with("Location", href(path, key) + "/");
  }
  std::array<char, 512> head{};
  const auto got = ::pread(file.get(), head.data(), head.size(), 0);
  const std::string_view begin(head.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  auto response = described(std::string(archive::media_type(path.substr(path.rfind('/') + 1), begin)));
  response.file = std::move(file);
  return quiet(std::move(response), path);
}

// The first page that is archived makes the directory; it may also be mounted later, or again.
base::Fd Files::open(const std::string& path) const {
  if (bucket_) return bucket_->open_file(path);
  const base::Fd root(::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) throw base::Error(base::ErrorClass::unavailable, "the archive is not here: " + directory_.string());
  return base::Fd(open_beneath(root.get(), path, O_RDONLY));
}

Response Files::record(const RecordPath& path) const {
  auto body = connections_->with([&](pg::Connection& connection) {
    return read_record(
        connection, [this](const std::string& file) { return open(file); }, path);
  });
  if (!body) return refusal(404, "this snapshot has no record of that address\n");
  auto response = described(is_header_value(body->type) ? body->type : "application/octet-stream");
  response.body = std::move(body->bytes);
  response.file = std::move(body->file);
  // The document has no identity, so that its fonts are of another origin.
  constexpr std::array<std::string_view, 6> kFonts{"wOFF", "wOF2", "OTTO", "true", "ttcf", {"\0\1\0\0", 4}};
  if (std::any_of(kFonts.begin(), kFonts.end(), [&](auto begin) { return response.body.starts_with(begin); }))
    response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  return quiet(std::move(response), path.url);
}

namespace {

constexpr std::string_view kBlanks = " \t\n\f\r";

bool is_word(std::string_view text, std::size_t at, std::string_view word) {
  return at + word.size() <= text.size() && std::equal(word.begin(), word.end(), text.begin() + static_cast<long>(at),
                                                       [](char a, char b) { return a == base::to_lower(b); });
}

std::size_t behind(std::string_view text, std::size_t at, std::string_view letters) {
  return std::min(text.find_first_not_of(letters, at), text.size());
}

constexpr std::string_view kUnknown = ":"; // no path, and no kind of link

// Returns the first attribute of that name of the tag whose attributes begin there; empty: there is none. As browsers
// read it, but for references to characters. kUnknown if the text ends before.
std::string_view attribute_of(std::string_view text, std::size_t& at, std::string_view wanted) {
  constexpr std::string_view kBetween = " \t\n\f\r/";
  for (at = behind(text, at, kBetween); at < text.size() && text[at] != '>'; at = behind(text, at, kBetween)) {
    const auto name_end = std::min(text.find_first_of(" \t\n\f\r/>=", at + 1), text.size()); // it may begin with "="
    const auto name = text.substr(at, name_end - at);
    std::string_view value;
    at = behind(text, name_end, kBlanks);
    if (at < text.size() && text[at] == '=') {
      at = behind(text, at + 1, kBlanks);
      if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
        const auto end = std::min(text.find(text[at], at + 1), text.size());
        value = text.substr(at + 1, end - at - 1);
        at = std::min(end + 1, text.size());
      } else {
        const auto end = std::min(text.find_first_of(" \t\n\f\r>", at), text.size());
        value = text.substr(at, end - at);
        at = end;
      }
    }
    if (base::lower_case(name) == wanted) return at < text.size() ? value : kUnknown;
  }
  return at < text.size() ? std::string_view() : kUnknown;
}

bool loads_from_here(std::string_view rel) {
  constexpr std::array<std::string_view, 5> kPlain{"stylesheet", "alternate stylesheet", "icon", "shortcut icon",
                                                   "apple-touch-icon"};
  return std::find(kPlain.begin(), kPlain.end(), base::lower_case(base::trimmed(rel))) != kPlain.end();
}

// Returns true if a browser reads this as a path from the document on, whatever stands before it.
bool is_near(std::string_view path) {
  return !path.starts_with("//") && std::all_of(path.begin(), path.end(), [](char c) {
    return base::is_alpha(c) || base::is_digit(c) || std::string_view("-._~/%?#=+,@").find(c) != std::string_view::npos;
  });
}

// Returns true if an element whose attributes begin the text may connect to elsewhere. Browsers connect for a frame
// before they check the policy. `budget`: how much text may be read for the elements of a document; unread elements
// count as yes.
bool connects(std::string_view element, std::string_view text, std::size_t& budget) {
  const bool link = element == "link", object = element == "object";
  if (!link && !object && element != "iframe" && element != "frame" && element != "embed") return false;
  std::size_t at = 0;
  const auto value = attribute_of(text.substr(0, budget), at, link ? "rel" : object ? "data" : "src");
  budget -= std::min(budget, at);
  return link ? !loads_from_here(value) : !is_near(value);
}

} // namespace

std::string quiet_markup(std::string text) {
  auto budget = 8 * text.size();
  for (auto at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    // "<link", "<svg:link"
    const auto end = std::min(text.find_first_of(" \t\n\f\r/><", at + 1), text.size());
    const auto tag = std::string_view(text).substr(at + 1, end - at - 1);
    const auto name = at + 1 + tag.rfind(':') + 1; // npos + 1 is 0
    const auto element = base::lower_case(tag.substr(name - at - 1));
    if (connects(element, std::string_view(text).substr(end), budget)) text[name] = 'x';
    if (is_word(text, at, "<!entity")) text[at + 2] = 'x'; // what it stands for would be read once more
  }
  constexpr std::string_view kInner = "srcdoc";
  for (auto at = text.find_first_of("sS"); at != std::string::npos; at = text.find_first_of("sS", at + 1))
    if (is_word(text, at, kInner) && behind(text, at + kInner.size(), kBlanks) < text.size() &&
        text[behind(text, at + kInner.size(), kBlanks)] == '=')
      text[at] = 'x';
  return text;
}

bool hides_tags(std::string_view text) {
  return text.starts_with("\xFE\xFF") || text.starts_with("\xFF\xFE") || // UTF-16
         text.find('\x1B') != std::string_view::npos ||                  // ISO-2022-JP
         (text.size() > 1 && (text[0] == '\0' || text[1] == '\0'));      // UTF-16 as XML begins it
}

} // namespace holdfast::serve
