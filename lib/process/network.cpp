#include "lib/process/network.hpp"

#include "lib/base/async.hpp"
#include "lib/base/error.hpp"
#include "lib/process/shim/protocol.hpp"
#include "lib/process/spawn_launcher.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace holdfast::process {

namespace {

using base::Error;
using base::ErrorClass;

static_assert(PrivateNetwork::kMostListeners == shim::kMostListeners);

// Receives the answer of the shim: an errno value with the descriptors beside it.
std::vector<base::Fd> receive(int socket, int& error) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * shim::kMostListeners + 2 * sizeof(int))];
  iovec text{&error, sizeof error};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  error = EPIPE;
  std::vector<base::Fd> result;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof error)) return result;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(part) + at, sizeof fd);
      result.push_back(out_of_the_way(fd));
    }
  }
  return result;
}

} // namespace

std::shared_ptr<PrivateNetwork> PrivateNetwork::make(const std::filesystem::path& shim, std::size_t listeners) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    throw Error(ErrorClass::system, "cannot open a control socket: " + base::errno_text(errno));
  const auto ours = out_of_the_way(pair[0]);
  auto theirs = out_of_the_way(pair[1]);
  asio::io_context io;
  SpawnLauncher launcher;
  launcher.duplicate(-1, STDIN_FILENO);
  launcher.duplicate(theirs.get(), shim::kControlDescriptor);
  launcher.close_from(shim::kControlDescriptor + 1);
  boost::system::error_code failure;
  auto helper = launcher(io.get_executor(), failure, shim.string(),
                         std::vector<std::string>{"network", std::to_string(listeners)});
  if (failure) throw Error(ErrorClass::system, "cannot start " + shim.string() + ": " + failure.message());
  theirs.reset();
  int error = 0;
  auto received = receive(ours.get(), error);
  boost::system::error_code ignored;
  helper.wait(ignored);
  if (error == 0 && received.size() < listeners + 1) error = EMFILE;
  if (error != 0)
    throw Error(ErrorClass::unavailable, "hooks cannot have a network of their own: " + base::errno_text(error));
  auto network = std::make_shared<PrivateNetwork>();
  network->network_ = std::move(received.front());
  received.erase(received.begin());
  if (received.size() > listeners) {
    network->owner_ = std::move(received.front());
    received.erase(received.begin());
  }
  network->listeners_ = std::move(received);
  return network;
}

base::Fd PrivateNetwork::listener(std::size_t number) const {
  base::Fd copy(::fcntl(listeners_.at(number).get(), F_DUPFD_CLOEXEC, shim::kFirstFree));
  if (!copy) throw Error(ErrorClass::system, "cannot copy a socket: " + base::errno_text(errno));
  return copy;
}

} // namespace holdfast::process
