#pragma once
// A client of an S3-compatible object store, over libcurl, which signs (AWS SigV4). Every body carries its SHA-256 in
// the signed request, so that the store refuses incomplete bodies. A request that fails for a passing reason (no
// connection, silence, 5xx, "slow down") is repeated for a quarter of a minute, and four seconds more at most; each has
// a deadline, which grows with its size. A store that has failed for so long counts as unreachable: until a request
// succeeds again, each is tried once, and gives up soon. Blocking; any thread, any number at once: each request takes a
// connection out of a small pool. Keys of objects are taken below the location's prefix. Credentials are read again
// when the store refuses them, and shortly before they expire.
//
// Errors: unavailable (no answer, or the store refuses us), input_output (an unreadable answer), cannot_create (the
// store has no space for us).

#include "lib/http/client.hpp"
#include "lib/s3/credentials.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::s3 {

// Objects up to this size are sent in one piece, larger ones in pieces of at least this.
inline constexpr std::size_t kPartSize = 8u << 20;

inline constexpr std::size_t kLargePart = 32u << 20; // of what has no known size

struct Object {
  std::string key; // below the prefix
  std::uint64_t size{0};
};

struct Listing {
  std::vector<Object> objects;          // in the order of their keys' bytes
  std::vector<std::string> directories; // "a/b/": only for one level
};

class Client {
public:
  // Makes no request. Throws Error(configuration) if there are no keys.
  // `timeout`: for how long a request that fails for a passing reason is repeated.
  using Find = std::function<Credentials(const Location&)>;
  explicit Client(Location location, Find find = find_credentials,
                  std::chrono::milliseconds timeout = std::chrono::seconds(15));
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Location& location() const noexcept { return location_; }
  // Why the store counts as unreachable; empty: it does not. Sends no request.
  std::string trouble() const;

  // Reads an object. Returns false if it does not exist. The data of `sink` before a failure is incomplete.
  bool get(const std::string& key, const std::function<void(std::string_view)>& sink);
  bool get(const std::string& key, std::string& body);
  void put(const std::string& key, std::string_view body, const std::string& type);
  // Writes an object only if it does not exist; returns false if it does. Checks first, for stores that do not support
  // the condition.
  bool put_new(const std::string& key, std::string_view body, const std::string& type);
  // Writes the data that `read` yields (0: the end), in parts if `size` is large. Nothing is visible under the key
  // before all of it has arrived. Returns the SHA-256 of the data, in hex.
  using Read = std::function<std::size_t(char* buffer, std::size_t room)>;
  std::string put_stream(const std::string& key, std::uint64_t size, const std::string& type, const Read& read);
  // Writes data of unknown size, up to the end of `read`, in parts of kLargePart. Throws Error(cannot_create) if that
  // is more than an object can hold in such parts, 320 GB.
  void put_stream(const std::string& key, const std::string& type, const Read& read);
  // Everything whose key begins with `prefix`; `one_level`: what lies below a further "/" as a directory.
  Listing list(const std::string& prefix, bool one_level);
  void remove(const std::string& key); // a missing one is fine

private:
  friend class Multipart;
  struct Call {
    const char* method;
    std::string key;
    std::map<std::string, std::string> query;
    std::string_view body;
    std::map<std::string, std::string> headers; // lower case
    std::function<void(std::string_view)> sink; // takes the body of a good answer
  };
  // Repeats what failed for a passing reason; throws for statuses that are not in `good` (besides 200 to 299).
  http::Response request(const Call& call, std::initializer_list<int> good = {});
  // `silence`: after how long without a byte there will be no answer.
  http::Response attempt(const Call& call, const Credentials& credentials, std::chrono::seconds silence);
  Credentials credentials();
  // Reads the credentials again. Returns false if they are those that the store has refused.
  bool renew(const Credentials& refused);
  [[noreturn]] void fail(const Call& call, int status, const std::string& trouble) const;
  void set_trouble(const std::string& trouble);
  std::string named(const Call& call) const; // for messages
  std::string address(const Call& call) const;

  Location location_;
  Find find_;
  std::chrono::milliseconds timeout_;
  http::Client http_;
  mutable std::mutex mutex_;
  std::string trouble_; // guarded by mutex_
  std::mutex credentials_mutex_;
  Credentials credentials_; // guarded by credentials_mutex_
};

} // namespace holdfast::s3
