#pragma once
// Users for the hooks of a worker that is root: numbers without accounts, one for all hooks of a crawl at a time. So
// the hooks of two crawls cannot signal, trace or read each other, the kernel's limit of processes counts those of one
// crawl, and all remains end by one kill(-1).

#include "lib/base/file.hpp"
#include "lib/process/sandbox.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace holdfast::process {

// A user that no other worker of this network namespace hands out meanwhile. The destructor ends all that runs as it
// (blocking, a millisecond). Any thread.
class HookUser {
public:
  HookUser(const Sandbox::User& user, base::Fd held, std::filesystem::path shim);
  ~HookUser();
  HookUser(const HookUser&) = delete;
  HookUser& operator=(const HookUser&) = delete;

  const Sandbox::User& user() const noexcept { return user_; }

private:
  const Sandbox::User user_;
  const base::Fd held_;
  const std::filesystem::path shim_;
};

class HookUsers {
public:
  HookUsers() = default; // none
  // `range`: "FIRST-LAST" or one number; shim: the holdfast-shim program. Throws Error(configuration) if it is no such
  // range, or has root in it.
  HookUsers(const std::string& range, std::filesystem::path shim);

  // Returns false if hooks run as this process does: it is no root, or its namespace of users has none of the range.
  bool any() const noexcept { return first_ <= last_; }
  // Leases a user. Null if there are none. Throws Error(unavailable) if each one is leased or has an account.
  std::shared_ptr<const HookUser> lease() const;
  // Ends the processes of the owner of this directory, if it is one of these users and is not leased.
  void end_owner_of(const std::filesystem::path& directory) const;
  // "as a user of its own (50000-59999)"; "" if there are none.
  std::string description() const;

private:
  std::shared_ptr<const HookUser> take(uid_t uid) const;

  uid_t first_{1}, last_{0};
  std::filesystem::path shim_;
};

} // namespace holdfast::process
