#pragma once
// "holdfast-shim network COUNT": makes a network for hooks and hands it to its starter over the control socket: an
// errno value, and with 0 the descriptors of the network, of the namespace of users that owns it (not if this is root),
// and of COUNT sockets that listen on its loopback interface. Then it ends.

#include "lib/process/shim/protocol.hpp"
#include "lib/process/shim/view.hpp"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::process::shim {

inline int raise_loopback() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  ifreq interface {};
  strncpy(interface.ifr_name, "lo", IFNAMSIZ - 1);
  interface.ifr_flags = IFF_UP;
  const int error = ioctl(fd, SIOCSIFFLAGS, &interface) == 0 ? 0 : errno;
  close(fd);
  return error;
}

// Ports from 3128 on: nothing else is in this network.
inline int listen_on(size_t number) {
  constexpr uint16_t kFirstPort = 3128;
  constexpr int kBacklog = 128;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(kFirstPort + number));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, kBacklog) == 0)
    return fd;
  return -1;
}

inline int make_network(int* descriptors, size_t& count, size_t listeners) {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const bool plain = uid != 0;
  if (syscall(SYS_unshare, CLONE_NEWNET | (plain ? CLONE_NEWUSER : 0)) != 0) return errno;
  if (plain)
    if (const int error = View::map_user(uid, gid)) return error;
  if (const int error = raise_loopback()) return error;
  descriptors[count++] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (plain) descriptors[count++] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
  for (size_t i = 0; i < listeners; ++i)
    descriptors[count++] = listen_on(i);
  for (size_t i = 0; i < count; ++i)
    if (descriptors[i] < 0) return errno;
  return 0;
}

inline int network_main(const char* wanted) {
  int descriptors[kMostListeners + 2];
  size_t count = 0;
  const size_t listeners = strtoul(wanted, nullptr, 10);
  int error = listeners > kMostListeners ? EINVAL : make_network(descriptors, count, listeners);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)];
  iovec text{&error, sizeof error};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (error == 0) {
    message.msg_control = control;
    message.msg_controllen = static_cast<decltype(message.msg_controllen)>(CMSG_SPACE(sizeof(int) * count));
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = static_cast<decltype(part->cmsg_len)>(CMSG_LEN(sizeof(int) * count));
    memcpy(CMSG_DATA(part), descriptors, sizeof(int) * count);
  }
  return sendmsg(kControlDescriptor, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof error) ? 0 : 1;
}

} // namespace holdfast::process::shim
