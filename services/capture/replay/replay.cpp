#include "services/capture/replay/replay.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/formats/link.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/browser/browser_host.hpp"
#include "services/capture/browser/browser_page.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/browser/tab.hpp"
#include "services/capture/browser/view.hpp"
#include "services/capture/extract/icon.hpp"
#include "services/capture/extract/readable.hpp"
#include "services/capture/replay/replay_source.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestFile = 128u << 20; // that is compared
constexpr std::size_t kMissingTold = 20;
constexpr int kHighestWindow = 1080; // a lower picture is as high as its window, or shows all of the page anyway
constexpr int kScrollBar = 15;       // the width of Chromium's
constexpr Seconds kComparison{60};
constexpr const char* kNoProxy = "http://127.0.0.1:9"; // nothing listens there

// Compares two images, as data: URLs: the share of pixels that are equal. Colours that differ by less than text is
// smoothed count as equal; where only one image has a pixel, it is different. Transparent pixels are white. `as_left`:
// of the right one, pixels beyond the width of the left one do not count.
constexpr const char* kCompare = R"((async (left, right, asLeft) => {
  const open = async (url) => createImageBitmap(await (await fetch(url)).blob());
  const pictures = [await open(left), await open(right)];
  const width = asLeft ? pictures[0].width : Math.max(...pictures.map(p => p.width));
  const height = Math.max(...pictures.map(p => p.height));
  const band = 256, most = 24;
  const pen = new OffscreenCanvas(width, band).getContext('2d', {willReadFrequently: true});
  let different = 0;
  for (let top = 0; top < height; top += band) {
    const [a, b] = pictures.map(picture => {
      pen.clearRect(0, 0, width, band);
      pen.fillStyle = 'white';
      pen.fillRect(0, -top, picture.width, picture.height);
      pen.drawImage(picture, 0, -top);
      return pen.getImageData(0, 0, width, band).data;
    });
    for (let i = 0; i < a.length; i += 4)
      for (let c = 0; c < 4; ++c)
        if (Math.abs(a[i + c] - b[i + c]) > most) { ++different; break; }
  }
  return 1 - different / (width * height);
}))";

std::string bytes_of(const fs::path& path) {
  auto bytes = read_file(path, kLargestFile + 1);
  return bytes.size() > kLargestFile ? "" : std::move(bytes);
}

// A process of ours that does `work` and ends with us; what it prints can be waited for.
class Child {
public:
  template <typename Work>
  explicit Child(Work&& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw failed("cannot make a pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw failed("cannot start a process");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::_exit(work());
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
    ::close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits until it has printed something; returns false if it has ended without.
  bool ready() {
    char byte = 0;
    return ::read(output_, &byte, 1) == 1;
  }
  void end() {
    ::kill(pid_, SIGTERM);
    std::string rest(1u << 12, '\0');
    while (::read(output_, rest.data(), rest.size()) > 0) { // a full pipe would keep it
    }
    wait();
  }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

private:
  pid_t pid_{-1};
  int output_{-1};
};

// Chromium alone: from a new namespace of users, the archive's files, which verify holds open, cannot be opened.
int run_host_without_network() {
  const auto user = ::geteuid();
  const auto group = ::getegid();
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
    std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
  }
  return run_browser_host();
}

// Removes proxies. Where the kernel forbids a network without a way out, there is still no proxy.
void forget_proxies() {
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"})
    ::setenv(name, kNoProxy, 1);
  for (const char* name : {"no_proxy", "NO_PROXY", "HOLDFAST_EGRESS", "COOKIES_FILE", "USER_AGENT"})
    ::unsetenv(name);
}

class Replay {
public:
  explicit Replay(fs::path directory)
      : directory_(std::move(directory)), asked_(Json::parse(bytes_of(directory_ / "replay.json"))),
        url_(asked_.at("url")) {}

  Json run() {
    ::setenv("CRAWL_DIR", (directory_ / "crawl").c_str(), 1);
    ::setenv("SNAP_DIR", (directory_ / "snapshot").c_str(), 1);
    forget_proxies();
    look_as_captured(0);
    fs::create_directories(directory_ / "snapshot");
    Child host(run_host_without_network);
    if (!host.ready()) throw failed("Chromium cannot be started");
    Child tab([this] {
      ReplaySource source(asked_.at("records"), directory_ / "requests");
      return run_hook("browser", url_, [&](Job& job) { return replay_tab(job, source); });
    });
    tab.ready();
    const auto page = Json::parse(bytes_of(directory_ / "snapshot/browser/page.json"), nullptr, false);
    if (!page.is_object()) throw failed("the page did not open");
    const auto ending = page.value("ending", Json());
    // Types that browsers do not show, such as PDF, have neither image nor text: only the response can be compared.
    const bool shown_then = !asked_.value("picture", "").empty() || !asked_.value("dom", "").empty();
    const bool shown = ending.is_null();
    if (!shown && (shown_then || ending.value("status", "") != "noresults"))
      throw failed(ending.value("reason", "the page did not open"));
    Json result = {{"screenshot", nullptr}, {"text", nullptr}, {"problem", ""}};
    if (shown) {
      Child([this] { return run_hook("screenshot", url_, take_screenshot); }).wait();
      Child([this] { return run_hook("dom", url_, save_dom); }).wait();
      result["screenshot"] = compare_pictures();
      if (has_own_size()) result["screenshot"] = compare_with_scroll_bar(result["screenshot"]);
      result["text"] = compare_texts();
    }
    tab.end();
    compare_resources(result);
    return result;
  }

private:
  Json compare_pictures() {
    const fs::path captured = asked_.value("picture", "");
    const auto replayed = directory_ / "snapshot/screenshot" / captured.filename();
    const auto left = bytes_of(captured), right = bytes_of(replayed);
    if (captured.empty() || left.empty() || right.empty()) return nullptr;
    const auto url = [&](const std::string& bytes) {
      const auto kind = captured.extension() == ".jpg" ? "jpeg" : captured.extension().string().substr(1);
      return json_text("data:image/" + kind + ";base64," + base::base64_encode(bytes));
    };
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(kComparison);
    DevTools browser(browser_socket());
    const auto context = text_at(browser.call("Target.createBrowserContext", {{"disposeOnDetach", true}}, "", until),
                                 "browserContextId");
    const auto session = browser.attach_to(browser.open_page(context, until), until);
    const auto value = browser.evaluate(std::string(kCompare) + "(" + url(left) + "," + url(right) + "," +
                                            (has_own_size() ? "true" : "false") + ")",
                                        session, until);
    return value.is_number() ? value : Json();
  }

  Json compare_texts() {
    const fs::path captured = asked_.value("dom", "");
    const auto left = bytes_of(captured), right = bytes_of(directory_ / "snapshot/dom/output.html");
    if (captured.empty() || left.empty() || right.empty()) return nullptr;
    return same_words(blocks_as_text(readable_blocks(left)), blocks_as_text(readable_blocks(right)));
  }

  // Compares the resources that the browser loaded then with those that it loads now.
  void compare_resources(Json& result) {
    std::set<std::string> captured, loaded, missing;
    for (const auto& record : asked_.at("records"))
      if (const auto key = record.value("key", ""); !key.empty() && record.value("by_browser", false))
        captured.insert(key);
    const auto icons = icon_keys();
    Json missing_urls = Json::array();
    std::ifstream requests(directory_ / "requests");
    for (std::string sign, key, url; requests >> sign >> key >> url;) {
      const bool found = sign == "+";
      const bool is_new = (found ? loaded : missing).insert(key).second;
      if (!found && is_new && missing_urls.size() < kMissingTold) missing_urls.push_back(url);
    }
    // A browser without a window may do without the icon.
    std::erase_if(captured, [&](const auto& key) { return icons.contains(key) && !loaded.contains(key); });
    auto all = captured;
    all.insert(loaded.begin(), loaded.end());
    all.insert(missing.begin(), missing.end());
    const auto both =
        std::count_if(captured.begin(), captured.end(), [&](const auto& key) { return loaded.contains(key); });
    result["resources"] = captured.empty() ? Json() : Json(static_cast<double>(both) / static_cast<double>(all.size()));
    result["missing"] = missing.size();
    result["missing_urls"] = missing_urls;
  }

  std::set<std::string> icon_keys() const {
    auto icons = linked_icons(bytes_of(directory_ / "snapshot/dom/output.html"), url_);
    if (const auto usual = formats::join_url(url_, "/favicon.ico")) icons.push_back(*usual);
    std::set<std::string> keys;
    for (const auto& icon : icons)
      keys.insert(warc::url_key(icon));
    return keys;
  }

  // A picture that another program made has sides of its own.
  bool has_own_size() const {
    const int width = asked_.value("width", 0);
    return width > 0 && width <= kLargestSide - kScrollBar && asked_.value("height", 0) > 0;
  }
  void look_as_captured(int more) const {
    if (!has_own_size()) return;
    const int height = asked_.value("height", 0);
    const auto window =
        std::to_string(asked_.value("width", 0) + more) + "," + std::to_string(std::min(height, kHighestWindow));
    ::setenv("BROWSER_RESOLUTION", window.c_str(), 1);
    ::setenv("SCREENSHOT_RESOLUTION", window.c_str(), 1);
    ::setenv("SCREENSHOT_MAX_HEIGHT", std::to_string(height).c_str(), 1);
    ::setenv("SCREENSHOT_FORMAT", "png", 1);
  }
  // A picture may be narrower, by the scroll bar, than the window in which the page was laid out for it. The better
  // of both.
  Json compare_with_scroll_bar(const Json& without) {
    const auto picture = directory_ / "snapshot/screenshot/screenshot.png", first = directory_ / "first.png";
    std::error_code error;
    fs::rename(picture, first, error);
    if (error) return without;
    look_as_captured(kScrollBar);
    Child([this] { return run_hook("screenshot", url_, take_screenshot); }).wait();
    auto with = compare_pictures();
    if (with.is_number() && (!without.is_number() || with > without)) return with;
    fs::rename(first, picture, error);
    return without;
  }

  const fs::path directory_;
  const Json asked_;
  const std::string url_;
};

std::map<std::string, long> count_words(const std::string& text) {
  std::map<std::string, long> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;)
    ++words[word];
  return words;
}

} // namespace

double same_words(const std::string& left, const std::string& right) {
  const auto a = count_words(left), b = count_words(right);
  long both = 0, all = 0;
  for (const auto& [word, count] : a) {
    const auto other = b.find(word);
    if (other != b.end()) both += 2 * std::min(count, other->second);
    all += count;
  }
  for (const auto& [word, count] : b)
    all += count;
  return all == 0 ? 1 : static_cast<double>(both) / static_cast<double>(all);
}

int run_replay(const fs::path& directory) {
  ::signal(SIGPIPE, SIG_IGN);
  Json result;
  try {
    result = Replay(fs::absolute(directory)).run();
  } catch (const Ending& ending) {
    result = {{"problem", one_line(ending.reason, 500)}};
  } catch (const std::exception& error) {
    result = {{"problem", one_line(error.what(), 500)}};
  }
  std::ofstream file(directory / "result.json");
  file << json_text(result) << '\n';
  file.close();
  return file ? 0 : 1;
}

} // namespace holdfast::capture
