#include "services/capture/browser/browser_host.hpp"

#include "services/capture/browser/broker.hpp"
#include "services/capture/browser/chromium.hpp"
#include "services/capture/hook.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostAhead = 4u << 20;   // for a Chromium that does not read: hooks wait meanwhile
constexpr std::chrono::seconds kStartTime{45}; // until its first answer, on a machine that is busy
constexpr int kPagesPerBrowser = 500;          // then another Chromium is started, once no page is open

volatile sig_atomic_t stopping = 0;

// Prints without a stream of C++: <iostream> sets up its locales in each start of the program.
void say(std::FILE* stream, std::string text) {
  text += '\n';
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

class Host {
public:
  int run();
  int run_for(int socket);
  int start_and_end();

private:
  void prepare();
  void listen();
  void launch();
  bool start_browser();
  void end_browser();
  void accept_client();
  void read_client(Client& client);
  bool round();
  bool serve();

  int listener_{-1};
  bool for_one_{false}; // one client, not hooks
  bool sandboxed_{may_be_sandboxed()};
  std::string program_;
  Chromium browser_;
  Clients clients_;
  Broker broker_{browser_.outgoing, clients_};
};

void Host::listen() {
  ::unlink(kBrowserSocket);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, kBrowserSocket,
               sizeof address.sun_path - 1); // relative: the full path may be too long
  const auto mask = ::umask(0077);
  const bool bound = listener_ >= 0 && ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::umask(mask);
  if (!bound || ::listen(listener_, 64) != 0)
    throw failed(std::string("cannot listen on ") + kBrowserSocket + ": " + std::strerror(errno));
}

// Starts Chromium. A container gives it no namespaces for its own sandbox, and a kernel may not: whether it starts with
// one is seen by trying. Without one it has the sandbox of its hook.
void Host::launch() {
  if (start_browser()) return;
  auto reason = browser_.last_words();
  end_browser();
  if (sandboxed_) {
    say(stderr, "Chromium does not start with its own sandbox here, so it runs without: " + reason);
    sandboxed_ = false;
    if (start_browser()) return;
    reason = browser_.last_words();
    end_browser();
  }
  throw failed("Chromium does not start: " + (reason.empty() ? "it ends without a word" : reason));
}

// Returns false if it ends before its first answer. Also returns true if we are requested to end meanwhile.
bool Host::start_browser() {
  browser_.start(program_, sandboxed_);
  broker_.begin(for_one_);
  bool answered = false;
  sigset_t none;
  ::sigemptyset(&none);
  for (const auto until = Clock::now() + kStartTime; !answered && stopping == 0;) {
    if (!browser_.flush()) return false;
    const auto left = std::chrono::ceil<std::chrono::seconds>(until - Clock::now());
    if (left.count() <= 0)
      throw failed("Chromium has not answered within " + std::to_string(kStartTime.count()) + " s of its start");
    std::array<pollfd, 2> waiting{pollfd{browser_.answers(), POLLIN, 0}, pollfd{browser_.errors(), POLLIN, 0}};
    const timespec longest{left.count(), 0};
    if (::ppoll(waiting.data(), waiting.size(), &longest, &none) < 0) continue;
    if (waiting[1].revents != 0) browser_.read_errors();
    if (waiting[0].revents != 0 && !browser_.read([&](std::string_view message) {
          answered = true;
          broker_.take_message(message);
        }))
      return false;
  }
  return true;
}

void Host::end_browser() {
  browser_.end();
  broker_.forget();
}

void Host::accept_client() {
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  if (browser_.runs() && broker_.pages() >= kPagesPerBrowser && clients_.empty()) end_browser();
  if (!browser_.runs()) launch();
  clients_.emplace_back().socket = socket;
}

void Host::read_client(Client& client) {
  auto got = Got::some;
  do
    got = read_messages(client.socket, client.incoming, [&](auto message) { broker_.take_command(client, message); });
  while (got == Got::some && browser_.outgoing.bytes.size() < kMostAhead);
  if (got == Got::end) client.gone = true;
}

// Waits for something to happen and does it.
bool Host::round() {
  std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
  if (browser_.runs()) {
    waiting.push_back({browser_.answers(), POLLIN, 0});
    waiting.push_back({browser_.commands(), static_cast<short>(browser_.outgoing.bytes.empty() ? 0 : POLLOUT), 0});
    waiting.push_back({browser_.errors(), POLLIN, 0});
  }
  const auto first_client = waiting.size();
  const int reads = browser_.outgoing.bytes.size() < kMostAhead ? POLLIN : 0;
  for (const auto& client : clients_)
    waiting.push_back({client.socket, static_cast<short>(client.outgoing.bytes.empty() ? reads : reads | POLLOUT), 0});
  sigset_t none;
  ::sigemptyset(&none);
  if (::ppoll(waiting.data(), waiting.size(), nullptr, &none) < 0) return stopping == 0;
  bool alive = true;
  if (first_client > 1) {
    if (waiting[1].revents != 0)
      alive = browser_.read([this](std::string_view message) { broker_.take_message(message); });
    if ((waiting[2].revents & POLLERR) != 0) alive = false;
    if (waiting[3].revents != 0) browser_.read_errors();
  }
  auto place = waiting.begin() + static_cast<std::ptrdiff_t>(first_client);
  for (auto& client : clients_) {
    const auto happened = (place++)->revents;
    if ((happened & POLLOUT) != 0 && !client.outgoing.flush(client.socket)) client.gone = true;
    if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0) read_client(client);
  }
  if (alive && browser_.runs()) alive = browser_.flush();
  for (auto it = clients_.begin(); it != clients_.end();) {
    if (!alive || it->gone) {
      broker_.drop(*it, browser_.runs());
      ::close(it->socket);
      it = clients_.erase(it);
    } else {
      ++it;
    }
  }
  if (!alive) {
    const auto words = browser_.last_words();
    say(stderr, "Chromium has ended by itself" + (words.empty() ? "" : " (" + words + ")") +
                    (for_one_ ? "" : "; the next page starts another"));
    end_browser();
  } else if (browser_.runs() && !browser_.flush()) {
    end_browser();
  }
  if ((waiting[0].revents & POLLIN) != 0) accept_client();
  return stopping == 0;
}

// Goes to its directory, and lets signals through only while it waits.
void Host::prepare() {
  struct sigaction action {};
  action.sa_handler = [](int) { stopping = 1; };
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT}) {
    ::sigaction(signal, &action, nullptr);
    ::sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr); // but while it waits
  ::signal(SIGPIPE, SIG_IGN);
  const auto crawl = Job::setting("CRAWL_DIR");
  if (!crawl.empty()) {
    fs::create_directories(fs::path(crawl) / "browser");
    fs::current_path(fs::path(crawl) / "browser");
  }
  program_ = browser_program();
}

int Host::start_and_end() {
  prepare();
  launch();
  if (stopping != 0) return 1;
  say(stdout,
      program_ + (sandboxed_ ? ", with its own sandbox" : ", without its own sandbox: it has that of its hook"));
  end_browser();
  return 0;
}

int Host::run() {
  prepare();
  listen();
  launch();
  if (stopping == 0) say(stdout, "Chromium is started: " + program_); // which says that we are ready
  serve();
  ::unlink(kBrowserSocket);
  return 0;
}

int Host::run_for(int socket) {
  prepare();
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  for_one_ = true;
  clients_.emplace_back().socket = socket;
  launch();
  return serve() ? 0 : 1;
}

// Serves hooks. Returns false if Chromium has ended by itself.
bool Host::serve() {
  try {
    while (stopping == 0 && round() && !(for_one_ && clients_.empty())) {
    }
  } catch (...) {
    end_browser();
    throw;
  }
  const bool runs = browser_.runs();
  end_browser();
  return runs;
}

// The exit status of a hook.
template <typename... Arguments>
int run(int (Host::*work)(Arguments...), Arguments... arguments) {
  try {
    return (Host().*work)(arguments...);
  } catch (const Ending& ending) {
    say(stderr, ending.reason);
    return ending.status == Status::skipped ? 10 : 1;
  } catch (const std::exception& error) {
    say(stderr, error.what());
    return 1;
  }
}

} // namespace

int run_browser_host() { return run(&Host::run); }

int run_browser_for(int socket) { return run(&Host::run_for, socket); }

int try_browser() { return run(&Host::start_and_end); }

} // namespace holdfast::capture
