#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/operation.hpp"
#include "services/cli/command/help.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/look/status.hpp"
#include "services/cli/terminal/output.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr const char* kKeys = "j k: move   Enter: why   p: pause or resume the crawl   q: quit";

// A screen of its own and keys without echo, given back by the destructor. Longer lines than it has are cut by the
// terminal.
class Screen {
public:
  Screen() : reads_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    print("\x1b[?1049h\x1b[?25l\x1b[?7l");
    if (!reads_) return;
    auto raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~Screen() {
    if (reads_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    print("\x1b[?7h\x1b[?25h\x1b[?1049l");
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool reads() const { return reads_; }

  // Returns the next key, with the arrows as j and k; 0: none within this time, or a signal.
  char key(std::chrono::milliseconds time) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    std::array<char, 64> bytes{};
    if (typed_.empty()) {
      if (::poll(&input, reads_ ? 1 : 0, static_cast<int>(time.count())) <= 0) return 0;
      const auto count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (count <= 0) return 'q';
      typed_.assign(bytes.data(), static_cast<std::size_t>(count));
    }
    const bool up = typed_.starts_with("\x1b[A"), down = typed_.starts_with("\x1b[B");
    const char key = up ? 'k' : down ? 'j' : typed_.front();
    typed_.erase(0, up || down ? 3 : 1);
    return key;
  }

  // Draws in one write, over the old text: nothing is cleared first, so nothing flickers. `marked`: a line of the text;
  // `foot`: the last lines of the screen.
  static void draw(const std::string& text, int marked, const std::string& foot) {
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const auto last = std::count(foot.begin(), foot.end(), '\n') + 1;
    std::string frame = "\x1b[?2026h\x1b[H", line;
    std::istringstream lines(text);
    for (int row = 0; (size.ws_row == 0 || row < size.ws_row - last) && std::getline(lines, line); ++row)
      frame += (row == marked ? "\x1b[7m" + line + "\x1b[K\x1b[27m" : line + "\x1b[K") + "\r\n";
    frame += "\x1b[J";
    if (!foot.empty() && size.ws_row > last) frame += "\x1b[" + std::to_string(size.ws_row - last + 1) + "H" + foot;
    print(frame + "\x1b[?2026l");
  }

private:
  static void print(const std::string& text) { base::write_all(STDOUT_FILENO, text); }

  termios before_{};
  const bool reads_;
  std::string typed_; // and not yet taken
};

// A row that keys move over.
struct Row {
  int line;
  std::string key, id, crawl; // key: of one of several hooks of a page, too; crawl: to pause or resume
};

struct Picture {
  std::string text;
  std::vector<Row> rows;
};

// Returns the state with running hooks; for programs, a line of JSON.
Picture picture_of(Context& context) {
  auto& collection = context.collection();
  std::ostringstream out;
  Picture picture;
  if (context.json()) {
    print_record("Status", collection.status(), out);
    return {out.str(), {}};
  }
  print_now(context, out);
  const auto add = [&](const catalog::ListQuery& query, const char* title, const char* id, const char* crawl) {
    const auto rows = print_list(collection, query, title, out);
    const auto text = out.str();
    const auto end = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    std::map<std::string, int> seen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto what = rows[i].text(id);
      picture.rows.push_back({end - static_cast<int>(rows.size() - i), what + ' ' + std::to_string(++seen[what]), what,
                              *crawl == '\0' ? "" : rows[i].text(crawl)});
    }
  };
  add(catalog::ListQuery{"workers", 8}.by("status", "running").by("kind", "worker"), "workers", "id", "");
  for (const auto& [status, title] :
       {std::pair{"started", "crawls"}, {"paused", "paused crawls"}, {"queued", "queued crawls"}})
    add(catalog::ListQuery{"crawls", 8}.by("status", status), title, "id", "id");
  add({"running", 100}, "running now", "snapshot_id", "crawl_id");
  picture.text = out.str();
  return picture;
}

// The sentence of `why`, in lines of the terminal.
std::string why(Context& context, const std::string& id) {
  return folded(printable(with_local_times(context.collection().why(id).reason)), 0, 0);
}

std::string pause_or_resume(Context& context, const std::string& crawl) {
  if (crawl.empty()) return "a worker: holdfast drain, or holdfast pause --worker";
  for (const char* action : {"pauseCrawl", "resumeCrawl"}) {
    const auto answer =
        context.collection().run(catalog::operation(action), crawl, base::new_uuid(), nlohmann::json::object());
    if (answer.value("changed", true)) return "crawl " + crawl + (*action == 'p' ? ": paused" : ": resumed");
  }
  return "crawl " + crawl + ": nothing to pause or resume";
}

// Redraws, and does what keys ask for.
class Follower {
public:
  Follower(Context& context, std::chrono::milliseconds delay) : context_(context), delay_(delay) {}

  void run(Screen& screen) {
    if (screen.reads()) foot_ = kKeys;
    for (auto next = Clock::now(); !interrupted();) {
      if (Clock::now() >= next) {
        if (const auto problem = look(); !problem.empty()) picture_ = {problem, {}};
        next = Clock::now() + delay_;
      }
      Screen::draw(picture_.text, chosen() == nullptr ? -1 : chosen()->line, foot_);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
      const char key = screen.key(std::max(left, std::chrono::milliseconds(0)));
      if (key == 'q') return;
      take(key);
      if (key == 'p') next = Clock::now();
    }
  }

  void run() {
    for (; !interrupted(); interrupted_within(delay_)) {
      if (const auto problem = look(); !problem.empty())
        std::cerr << "holdfast: " << problem;
      else if (!(std::cout << picture_.text << std::flush))
        return; // our reader has closed the pipe
    }
  }

private:
  using Clock = std::chrono::steady_clock;

  // Returns why there is no new picture; empty: there is.
  std::string look() {
    try {
      picture_ = picture_of(context_);
      return "";
    } catch (const base::Error& error) {
      return printable(std::string(context_.remote() ? "" : "no answer from the database: ") + error.what()) +
             "; trying again\n";
    }
  }

  const Row* chosen() const {
    const auto found =
        std::find_if(picture_.rows.begin(), picture_.rows.end(), [&](const Row& row) { return row.key == chosen_; });
    return found == picture_.rows.end() ? nullptr : &*found;
  }

  void take(char key) {
    if (picture_.rows.empty() || key == 0) return;
    const auto* row = chosen();
    foot_ = kKeys;
    if (key == 'j' || key == 'k') {
      const auto& rows = picture_.rows;
      const auto last = static_cast<std::ptrdiff_t>(rows.size()) - 1;
      auto at = row == nullptr ? (key == 'j' ? -1 : last + 1) : row - rows.data();
      at = std::clamp<std::ptrdiff_t>(at + (key == 'j' ? 1 : -1), 0, last);
      chosen_ = rows[static_cast<std::size_t>(at)].key;
    } else if (row != nullptr && (key == '\n' || key == 'p')) {
      try {
        foot_ = key == 'p' ? pause_or_resume(context_, row->crawl) : why(context_, row->id);
      } catch (const base::Error& error) {
        foot_ = printable(error.what());
      }
    }
  }

  Context& context_;
  const std::chrono::milliseconds delay_;
  Picture picture_;
  std::string chosen_, foot_;
};

} // namespace

int follow(Context& context, double delay) {
  Follower follower(context, std::chrono::milliseconds(static_cast<std::int64_t>(delay * 1000)));
  context.collection().status(); // without a collection, it ends here
  interrupted();
  if (context.json() || ::isatty(STDOUT_FILENO) == 0) {
    follower.run();
  } else {
    Screen screen;
    follower.run(screen);
  }
  return base::kExitInterrupted;
}

} // namespace holdfast::cli
