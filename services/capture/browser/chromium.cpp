#include "services/capture/browser/chromium.hpp"

#include "services/capture/fetch/egress.hpp"
#include "services/capture/hook.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr const char* kProfile = "profile";

// The proxy that other programs take from the environment. Without further words Chromium would reach addresses of the
// machine itself, and those of WebRTC, directly.
void add_proxy(std::vector<std::string>& arguments) {
  if (const auto proxy = egress_proxy(); !proxy.empty()) {
    arguments.push_back("--proxy-server=" + proxy);
    arguments.emplace_back("--proxy-bypass-list=<-loopback>");
    arguments.emplace_back("--force-webrtc-ip-handling-policy=disable_non_proxied_udp");
    return;
  }
  std::string proxies;
  for (const auto& proxy : other_proxies()) // its login: Recorder::log_in()
    proxies += (proxies.empty() ? "" : ";") + proxy.scheme + "=" + proxy.url;
  if (proxies.empty()) return;
  arguments.push_back("--proxy-server=" + proxies);
  arguments.push_back("--proxy-bypass-list=<-loopback>;" + Job::setting("no_proxy", Job::setting("NO_PROXY")));
  arguments.emplace_back("--force-webrtc-ip-handling-policy=disable_non_proxied_udp");
}

// Messages of a WebSocketStream would leave the browser past the reader's rules.
constexpr const char* kNotOffered = "--disable-blink-features=AutomationControlled,WebSocketStream";

std::vector<std::string> chromium_arguments(const std::string& program, const std::string& profile, bool sandboxed) {
  std::vector<std::string> arguments{program,
                                     "--headless=new",
                                     "--remote-debugging-pipe",
                                     "--user-data-dir=" + profile,
                                     "--disable-quic",
                                     "--no-first-run",
                                     "--no-default-browser-check",
                                     "--disable-background-networking",
                                     "--disable-component-update",
                                     "--disable-default-apps",
                                     "--disable-sync",
                                     "--disable-extensions",
                                     "--disable-gpu",
                                     "--disable-dev-shm-usage",
                                     "--disable-breakpad",
                                     "--disable-domain-reliability",
                                     "--disable-client-side-phishing-detection",
                                     "--disable-features=Translate,MediaRouter,OptimizationHints,HttpsUpgrades",
                                     kNotOffered,
                                     "--autoplay-policy=no-user-gesture-required",
                                     "--metrics-recording-only",
                                     "--mute-audio",
                                     "--hide-scrollbars",
                                     "--password-store=basic",
                                     "--use-mock-keychain",
                                     "--force-color-profile=srgb",
                                     "--disable-renderer-backgrounding",
                                     "--disable-backgrounding-occluded-windows",
                                     "--disable-background-timer-throttling",
                                     "--disable-ipc-flooding-protection",
                                     "--disable-hang-monitor",
                                     "--disable-prompt-on-repost"};
  if (!sandboxed) arguments.emplace_back("--no-sandbox");
  if (!Job::flag("CHECK_SSL_VALIDITY", true)) arguments.emplace_back("--ignore-certificate-errors");
  add_proxy(arguments);
  arguments.emplace_back("about:blank");
  return arguments;
}

// In the child: DevTools' pipe is 3 and 4.
[[noreturn]] void become_chromium(char** arguments, int commands, int answers, int errors) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  // Moved out of the way first: 3 and 4 may be in use by the pipes themselves.
  const int in = ::fcntl(commands, F_DUPFD, 10), out = ::fcntl(answers, F_DUPFD, 10);
  ::dup2(in, 3);
  ::dup2(out, 4);
  ::close(in);
  ::close(out);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

} // namespace

bool Outgoing::flush(int descriptor) {
  while (sent_ < bytes.size()) {
    const auto count = ::write(descriptor, bytes.data() + sent_, bytes.size() - sent_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return false;
    sent_ += static_cast<std::size_t>(count);
  }
  if (sent_ * 2 < bytes.size()) return true; // to move the rest each time would take quadratic time
  bytes.erase(0, sent_);
  sent_ = 0;
  return true;
}

Got read_messages(int descriptor, std::string& buffer, const Take& take) {
  std::array<char, 1u << 18> piece;
  const auto count = ::read(descriptor, piece.data(), piece.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Got::nothing;
  if (count <= 0) return Got::end;
  const auto searched = buffer.size();
  buffer.append(piece.data(), static_cast<std::size_t>(count));
  std::size_t begin = 0;
  for (auto end = buffer.find('\0', searched); end != std::string::npos; end = buffer.find('\0', begin)) {
    take(std::string_view(buffer).substr(begin, end - begin));
    begin = end + 1;
  }
  buffer.erase(0, begin);
  return Got::some;
}

std::string browser_program() {
  return Job::program("BROWSER_BINARY",
                      {"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"},
                      "chromium-headless-shell");
}

bool may_be_sandboxed() { return ::geteuid() != 0 && Job::flag("CHROME_SANDBOX", true); }

void Chromium::start(const std::string& program, bool sandboxed) {
  std::error_code ignored;
  fs::remove_all(kProfile, ignored);
  const auto profile = (fs::current_path() / kProfile).string();
  const auto arguments = chromium_arguments(program, profile, sandboxed);
  int down[2], up[2], errors[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0 || ::pipe2(errors, O_CLOEXEC) != 0)
    throw failed(std::string("cannot make a pipe: ") + std::strerror(errno));
  std::vector<char*> pointers;
  for (const auto& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::setenv("XDG_CONFIG_HOME", profile.c_str(), 1);
  ::setenv("XDG_CACHE_HOME", profile.c_str(), 1);
  pid_ = ::fork();
  if (pid_ < 0) throw failed(std::string("cannot start Chromium: ") + std::strerror(errno));
  if (pid_ == 0) become_chromium(pointers.data(), down[0], up[1], errors[1]);
  ::close(down[0]);
  ::close(up[1]);
  ::close(errors[1]);
  commands_ = down[1];
  answers_ = up[0];
  errors_ = errors[0];
  words_.clear();
  for (const int descriptor : {commands_, answers_, errors_})
    ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
}

void Chromium::end() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL); // the profile is thrown away: there is nothing to save
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  ::close(commands_);
  ::close(answers_);
  ::close(errors_);
  incoming_.clear();
  outgoing = {};
  std::error_code ignored;
  for (int tries = 0; tries < 20 && fs::exists(kProfile, ignored); ++tries) {
    fs::remove_all(kProfile, ignored); // its children may still be writing while they die
    if (fs::exists(kProfile, ignored)) ::usleep(20'000);
  }
}

bool Chromium::read(const Take& take) {
  auto got = Got::some;
  while (got == Got::some)
    got = read_messages(answers_, incoming_, take);
  return got == Got::nothing;
}

void Chromium::read_errors() {
  constexpr std::size_t kKept = 4096;
  std::array<char, kKept> piece;
  ssize_t count = 0;
  while ((count = ::read(errors_, piece.data(), piece.size())) > 0) {
    words_.append(piece.data(), static_cast<std::size_t>(count));
    if (words_.size() > kKept) words_.erase(0, words_.size() - kKept);
  }
}

std::string Chromium::last_words() {
  read_errors();
  const auto end = words_.find_last_not_of(" \n");
  if (end == std::string::npos) return {};
  const auto begin = words_.rfind('\n', end) + 1;
  return words_.substr(begin, end + 1 - begin);
}

} // namespace holdfast::capture
