#pragma once
// The servers that a connection string names, if it names several (host=a,b port=1,2). The one that was last connected
// to is tried first, so that a frozen server costs one session its timeout and not each. Private to lib/pg. Any thread.

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::pg {

struct Host {
  std::size_t place{0};            // in the string
  std::string name, address, port; // as `host`, `hostaddr` and `port` have it; each may be empty
};

// Empty if the string names one server, or none, or wants libpq to choose (target_session_attrs=prefer-standby).
std::vector<Host> hosts_of(const std::string& dsn);
std::vector<Host> hosts_to_try(const std::string& dsn);
// The string with this of its hosts alone. It has to be a primary, unless the string says otherwise.
std::string with_host(const std::string& dsn, const Host& host);

// A session with this one of the string's hosts was made.
void connected_to(const std::string& dsn, const Host& host);
// A string for each host but the one that was last connected to, primary or not.
std::vector<std::string> other_hosts(const std::string& dsn);

} // namespace holdfast::pg
