#pragma once
// Bounds on the connections of one peer, and of all. Owned by the server; any thread. A ConnectionSlot belongs to a
// connection and frees its slot when it is destroyed.

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace holdfast::serve {

// Connections by peer; some of them have not sent a request, or not all of it. Any thread.
class Peers {
public:
  static constexpr int kAll = 800;
  static constexpr int kOfPeer = 640; // connections of one address
  static constexpr int kUnasked = 32; // of those, connections without a complete request

  enum class Bound { of_peer, of_all }; // which bounds hold for a peer

  bool enter(const std::string& peer, Bound bound) {
    const std::lock_guard lock(mutex_);
    if (all_ >= kAll) return false;
    const auto known = peers_.find(peer);
    if (bound == Bound::of_peer && known != peers_.end() &&
        (known->second.all >= kOfPeer || known->second.unasked >= kUnasked))
      return false;
    ++all_;
    auto& counts = peers_[peer];
    ++counts.all;
    ++counts.unasked;
    return true;
  }
  void asked(const std::string& peer, int change) { // -1: a request is complete; +1: the next is awaited
    const std::lock_guard lock(mutex_);
    peers_[peer].unasked += change;
  }
  void leave(const std::string& peer, bool asking) {
    const std::lock_guard lock(mutex_);
    --all_;
    const auto known = peers_.find(peer);
    if (!asking) --known->second.unasked;
    if (--known->second.all == 0) peers_.erase(known);
  }

private:
  struct Counts {
    int all{0}, unasked{0};
  };
  std::mutex mutex_;
  std::map<std::string, Counts> peers_;
  int all_{0};
};

class ConnectionSlot {
public:
  ConnectionSlot(Peers& peers, std::string peer) : peers_(peers), peer_(std::move(peer)) {}
  ~ConnectionSlot() { peers_.leave(peer_, asking_); }
  ConnectionSlot(const ConnectionSlot&) = delete;
  ConnectionSlot& operator=(const ConnectionSlot&) = delete;
  void set_asking(bool asking) {
    if (asking != asking_) peers_.asked(peer_, asking ? -1 : 1);
    asking_ = asking;
  }

private:
  Peers& peers_;
  const std::string peer_;
  bool asking_{false};
};

} // namespace holdfast::serve
