#include "lib/process/hook_users.hpp"

#include "lib/base/error.hpp"
#include "lib/process/subprocess.hpp"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>

namespace holdfast::process {

using base::Error;
using base::ErrorClass;

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kLongestEnd{5};

// Root without these cannot give files to another user, become one, or end what runs as one.
bool has_capabilities() {
  constexpr std::uint64_t kChown = 1 << 0, kOverride = 1 << 1, kKill = 1 << 5, kSetgid = 1 << 6, kSetuid = 1 << 7;
  constexpr std::uint64_t kNeeded = kChown | kOverride | kKill | kSetgid | kSetuid;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) return (std::stoull(line.substr(7), nullptr, 16) & kNeeded) == kNeeded;
  return false;
}

// Cuts a range to what a namespace of users has of it.
void keep_mapped(const char* map, uid_t& first, uid_t& last) {
  std::ifstream lines(map);
  for (std::uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;) {
    if (first > inside + count - 1 || last < inside) continue;
    first = std::max(first, static_cast<uid_t>(inside));
    last = std::min(last, static_cast<uid_t>(std::min<std::uint64_t>(inside + count - 1, UINT32_MAX)));
    return;
  }
  first = 1, last = 0;
}

// The name of an abstract socket: taken by who binds it, free again when it ends, however it ends.
base::Fd hold(uid_t uid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "holdfast-hook-user-" + std::to_string(uid);
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  base::Fd held(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!held || ::bind(held.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return {};
  return held;
}

// Another container's user may have the number.
bool runs_something(uid_t uid) {
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    struct stat status {};
    const auto first = entry->path().filename().native()[0];
    if (first > '0' && first <= '9' && ::stat(entry->path().c_str(), &status) == 0 && status.st_uid == uid) return true;
  }
  return false;
}

bool has_account(uid_t uid) {
  passwd entry{}, *found = nullptr;
  std::array<char, 4096> text{};
  return ::getpwuid_r(uid, &entry, text.data(), text.size(), &found) == 0 && found != nullptr;
}

} // namespace

HookUser::HookUser(const Sandbox::User& user, base::Fd held, fs::path shim)
    : user_(user), held_(std::move(held)), shim_(std::move(shim)) {}

HookUser::~HookUser() {
  try {
    run_to_end({{shim_.native(), "end", std::to_string(user_.uid)}, {}}, kLongestEnd);
  } catch (const std::exception&) {
    // No process can be started: the rest of the hooks ends with the worker.
  }
}

HookUsers::HookUsers(const std::string& range, fs::path shim) : shim_(std::move(shim)) {
  const auto dash = range.find('-');
  const auto number = [&](const std::string& text) {
    const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoul(text) == 0)
      throw Error(ErrorClass::configuration, "hook.users: \"" + range + "\" is not a range of user ids",
                  "for example 50000-59999; 0 (root) is not allowed");
    return static_cast<uid_t>(std::stoul(text));
  };
  const auto first = number(range.substr(0, dash));
  const auto last = dash == std::string::npos ? first : number(range.substr(dash + 1));
  if (first > last) throw Error(ErrorClass::configuration, "hook.users: " + range + " begins after its end");
  if (::geteuid() != 0 || !has_capabilities()) return;
  first_ = first, last_ = last;
  for (const char* map : {"/proc/self/uid_map", "/proc/self/gid_map"})
    keep_mapped(map, first_, last_);
}

std::shared_ptr<const HookUser> HookUsers::take(uid_t uid) const {
  auto held = hold(uid);
  if (!held || has_account(uid) || runs_something(uid)) return nullptr;
  return std::make_shared<HookUser>(Sandbox::User{uid, uid}, std::move(held), shim_);
}

std::shared_ptr<const HookUser> HookUsers::lease() const {
  if (!any()) return nullptr;
  // Anywhere in the range: workers in containers do not see each other's, and the kernel counts the processes of a
  // number for the whole machine.
  static thread_local std::mt19937 random(std::random_device{}());
  const uid_t count = last_ - first_ + 1;
  const uid_t start = std::uniform_int_distribution<uid_t>(0, count - 1)(random);
  for (uid_t step = 0; step < count; ++step)
    if (auto user = take(first_ + (start + step) % count)) return user;
  throw Error(ErrorClass::unavailable, "each user of hook.users (" + std::to_string(count) + ") is in use",
              "give it a longer range of numbers without accounts");
}

void HookUsers::end_owner_of(const fs::path& directory) const {
  struct stat status {};
  if (::lstat(directory.c_str(), &status) != 0 || status.st_uid < first_ || status.st_uid > last_) return;
  if (auto held = hold(status.st_uid)) HookUser({status.st_uid, status.st_uid}, std::move(held), shim_);
}

std::string HookUsers::description() const {
  if (!any()) return "";
  return "each crawl's as a user of their own (" + std::to_string(first_) + " to " + std::to_string(last_) + ")";
}

} // namespace holdfast::process
