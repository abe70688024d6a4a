#pragma once
// A separate network for hooks: a loopback interface, and sockets that listen on it, whose connections this process
// accepts. There is no other way out of it. Made by the shim (shim/network.hpp); lives as long as a process is in it or
// the object exists. Any thread.

#include "lib/base/file.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace holdfast::process {

class PrivateNetwork {
public:
  static constexpr std::size_t kMostListeners = 250;

  // Blocking, some milliseconds. Throws Error(unavailable) if the system allows none.
  static std::shared_ptr<PrivateNetwork> make(const std::filesystem::path& shim, std::size_t listeners);

  int descriptor() const noexcept { return network_.get(); }
  // The namespace of users that owns it; -1 if that is our own.
  int owner() const noexcept { return owner_.get(); }
  std::size_t listeners() const noexcept { return listeners_.size(); }
  base::Fd listener(std::size_t number) const; // a copy

private:
  base::Fd network_, owner_;
  std::vector<base::Fd> listeners_;
};

} // namespace holdfast::process
