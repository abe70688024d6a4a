#include "lib/process/hook_connection.hpp"

#include "lib/process/orphans.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace holdfast::process {

namespace fs = std::filesystem;

namespace {

// Returns an address and port in the form of /proc/net/tcp and tcp6: words of hexadecimal digits.
std::string written(const in6_addr& address, in_port_t port, bool short_form) {
  std::string text;
  char word[9];
  for (int i = short_form ? 3 : 0; i < 4; ++i) {
    std::snprintf(word, sizeof word, "%08X", address.s6_addr32[i]);
    text += word;
  }
  std::snprintf(word, sizeof word, ":%04X", ntohs(port));
  return text + word;
}

// An IPv4 address as one that is mapped into IPv6.
sockaddr_in6 as_v6(const sockaddr_storage& given) {
  if (given.ss_family == AF_INET6) return reinterpret_cast<const sockaddr_in6&>(given);
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(given);
  sockaddr_in6 address{};
  address.sin6_port = v4.sin_port;
  address.sin6_addr.s6_addr32[2] = htonl(0xffff);
  address.sin6_addr.s6_addr32[3] = v4.sin_addr.s_addr;
  return address;
}

struct Owner {
  uid_t uid;
  std::string inode;
};

std::optional<Owner> owner_in(const char* table, const std::string& here, const std::string& there) {
  std::ifstream file(table);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmitted, uid, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmitted >> uid >> timeout >> inode;
    if (local == here && remote == there && inode != "0")
      return Owner{static_cast<uid_t>(std::strtoul(uid.c_str(), nullptr, 10)), inode};
  }
  return std::nullopt;
}

// Returns the owner of the socket at the other end, if it is of this network namespace and open.
std::optional<Owner> other_end(int socket) {
  sockaddr_storage near{}, far{};
  socklen_t near_size = sizeof near, far_size = sizeof far;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&near), &near_size) != 0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&far), &far_size) != 0)
    return std::nullopt;
  const auto ours = as_v6(near), theirs = as_v6(far);
  const auto find = [&](const char* table, bool short_form) {
    return owner_in(table, written(theirs.sin6_addr, theirs.sin6_port, short_form),
                    written(ours.sin6_addr, ours.sin6_port, short_form));
  };
  // A client can reach an IPv4 address by either kind of socket.
  if (IN6_IS_ADDR_V4MAPPED(&theirs.sin6_addr))
    if (auto owner = find("/proc/net/tcp", true)) return owner;
  return find("/proc/net/tcp6", false);
}

// Returns nothing if the open files of the process cannot be read.
std::optional<bool> holds(pid_t pid, const std::string& link) {
  std::error_code error;
  const fs::directory_iterator begin("/proc/" + std::to_string(pid) + "/fd", error), end;
  if (error) return error == std::errc::no_such_file_or_directory ? std::optional(false) : std::nullopt;
  for (auto at = begin; at != end; at.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(at->path(), gone) == link) return true;
    if (gone == std::errc::permission_denied || gone == std::errc::operation_not_permitted) return std::nullopt;
    if (error) break;
  }
  return false;
}

} // namespace

bool comes_from_hook(int socket) {
  const auto owner = other_end(socket);
  if (!owner) return false;
  const auto link = "socket:[" + owner->inode + "]";
  const auto processes = read_processes();
  for (const auto& [pid, entry] : processes) {
    if (!below_shim(entry, processes)) continue;
    if (const auto found = holds(pid, link)) {
      if (*found) return true;
      continue;
    }
    struct stat about {};
    if (::stat(("/proc/" + std::to_string(pid)).c_str(), &about) == 0 && about.st_uid == owner->uid) return true;
  }
  return false;
}

} // namespace holdfast::process
