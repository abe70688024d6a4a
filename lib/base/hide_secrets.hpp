#pragma once
// Takes secrets out of /proc/PID/environ, which shows the memory that the environment had when the program started.
// Copies take their place, so that getenv() and programs started later find them. Call it first in main(), while there
// is one thread. Uses no libraries, for holdfast-guard.

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace holdfast::base {

// Returns true if "NAME=value" is a secret: by its name, or a URL or connection string with a password in it.
inline bool is_secret_setting(const char* setting) {
  const char* const value = std::strchr(setting, '=');
  if (value == nullptr) return false;
  for (const char* part : {"PASSWORD", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL", "_KEY"}) {
    const char* const at = std::strstr(setting, part);
    if (at != nullptr && at < value) return true;
  }
  const char* const authority = std::strstr(value, "://");
  return (authority != nullptr && std::strchr(authority, '@') != nullptr) || std::strstr(value, "password=") != nullptr;
}

inline void hide_secrets(char** environment) {
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (!is_secret_setting(*entry)) continue;
    char* const copy = strdup(*entry);
    if (copy == nullptr) continue;
    explicit_bzero(*entry, std::strlen(*entry));
    *entry = copy;
  }
}

} // namespace holdfast::base
