#pragma once
// Identifies clients and their rights: a user that a trusted proxy names, a token of the database (holdfast token) in
// the header Authorization or in a cookie, or the role of guests. Clients that send wrong tokens have to wait. Any
// thread.

#include "lib/pg/connection.hpp"
#include "services/serve/http_message.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::serve {

// Bounds on how often a client may do something. A client may do it as often at once as in a minute; then as time goes
// by. Any thread.
class Rates {
public:
  explicit Rates(int in_a_minute) : most_(in_a_minute) {} // 0: no bound

  // Returns how long a client must wait; zero: not at all.
  std::chrono::seconds wait(const std::string& client) {
    const std::lock_guard lock(mutex_);
    return wait_of(filled(client));
  }
  // Counts what it does. Returns what wait() did before: unless that is zero, it may not do it, and nothing is counted.
  std::chrono::seconds take(const std::string& client) {
    const std::lock_guard lock(mutex_);
    auto& bucket = filled(client);
    const auto wait = wait_of(bucket);
    if (wait == std::chrono::seconds(0)) bucket.left -= 1;
    return wait;
  }

private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    double left;
    Clock::time_point at;
  };
  static constexpr std::size_t kRemembered = 10'000; // clients

  std::chrono::seconds wait_of(const Bucket& bucket) const {
    if (most_ == 0 || bucket.left >= 1) return std::chrono::seconds(0);
    return std::chrono::seconds(static_cast<long>(std::ceil((1 - bucket.left) * 60 / most_)));
  }
  double refilled(const Bucket& bucket, Clock::time_point now) const {
    const std::chrono::duration<double> passed = now - bucket.at;
    return std::min<double>(most_, bucket.left + passed.count() * most_ / 60);
  }
  Bucket& filled(const std::string& client) {
    const auto now = Clock::now();
    if (buckets_.size() >= kRemembered)
      std::erase_if(buckets_, [&](const auto& one) { return refilled(one.second, now) >= most_; });
    auto& bucket = buckets_.try_emplace(client, Bucket{static_cast<double>(most_), now}).first->second;
    bucket = {refilled(bucket, now), now};
    return bucket;
  }

  const int most_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

constexpr std::chrono::seconds kSignedIn{30 * 24 * 3600}; // how long a browser keeps its cookie

enum class Role { none, reader, operator_ };
// "reader" -> Role::reader; none for any other text.
Role role_named(std::string_view name);

struct Caller {
  std::string name; // of the token; empty: none
  Role role{Role::none};
  std::string files_key; // of the token or the user
  std::string user{};    // as a proxy names it; empty: none. Else neither is: a guest
  std::string account{}; // that the token acts for; empty: none

  bool may_read() const noexcept { return role != Role::none; }
  bool may_change() const noexcept { return role == Role::operator_; }
  bool is_guest() const noexcept { return name.empty() && user.empty(); }
  // Returns the name under which the database records commands.
  std::string by() const {
    return !user.empty()      ? "user " + user
           : !account.empty() ? "account " + account
           : is_guest()       ? "a guest of the page"
                              : "token " + name;
  }
};

// Groups, as a proxy names them, whose users have a role; "*": all users.
struct RoleGroups {
  std::vector<std::string> operators, readers;

  Role role_of(std::string_view groups) const; // separated by commas
};

class Access {
public:
  // guest: the role of requests without a token. Cookies are named after the collection, because a browser sends those
  // of all ports of a host.
  Access(const std::string& collection_id, Role guest, RoleGroups groups = {});

  // A token that is not valid is no guest: role none.
  Caller caller(const Request& request, pg::Connection& connection);
  // Returns the user that a proxy names, who needs no database; nullopt: it names none.
  std::optional<Caller> user(const Request& request) const;
  // Returns how long the client must wait before a token in its header is checked, because it sent wrong ones. Tokens
  // that were valid lately never wait. Zero: not at all.
  std::chrono::seconds wait(const Request& request);
  // Makes a secret that signs one browser in, as an operator, once: for the link that an operator of this machine is
  // shown. It is kept in memory alone, for a day, and replaces an earlier one.
  std::string make_link();
  // Returns true if this is that secret, which it then is no more.
  bool use_link(const std::string& secret);
  // The value of Set-Cookie that signs a browser in, or out if `token` is empty.
  std::string cookie(const Request& request, const std::string& token) const;

private:
  std::string token_of(const Request& request) const;

  bool was_valid(const std::string& token) const;

  const std::string cookie_;
  const Role guest_;
  const RoleGroups groups_;
  Rates wrong_; // tokens
  mutable std::mutex mutex_;
  std::set<std::string> valid_; // digests of tokens
  std::string link_;            // digest of the secret; empty: there is none
  std::chrono::steady_clock::time_point link_ends_{};
};

// Returns true if a page of another origin makes a browser send this. Such a request may change nothing.
bool is_cross_site(const Request& request);

// Reverse proxies whose header X-Forwarded-For is believed. Immutable; any thread.
class TrustedProxies {
public:
  using Address = boost::asio::ip::address;

  TrustedProxies() = default; // none
  // Addresses and networks, separated by commas or spaces: "127.0.0.1, 10.0.0.0/8, ::1". Throws Error(configuration)
  // naming `setting`.
  TrustedProxies(std::string_view text, const std::string& setting);

  bool contains(const Address& address) const;
  // The client behind a connection from `peer`. Each proxy appends the address that it sees to the header, so the
  // client is the last one that is no trusted proxy; what stands before it is the client's own claim.
  Address client(const Address& peer, std::string_view forwarded_for) const;

private:
  std::vector<boost::asio::ip::network_v4> four_;
  std::vector<boost::asio::ip::network_v6> six_;
};

// Bounds on the connections of one peer, and of all. Owned by the server; any thread. A ConnectionSlot belongs to a
// connection and frees its slot when it is destroyed.

// The name under which an address is counted. An IPv6 network counts as one peer, because its hosts choose their
// addresses.
std::string peer_of(const boost::asio::ip::address& address);

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
