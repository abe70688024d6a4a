#pragma once
// Archived files over HTTP. They are untrusted: nothing of them may run with the rights of a page of ours, and no path
// may lead out of the archive. Any thread.

#include "lib/archive/root.hpp"
#include "services/serve/http_message.hpp"
#include "services/serve/records.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::serve {

class Connections;

class Files {
public:
  // Opens the archive. `root`: a directory, or a bucket that must be of this collection (then throws as
  // archive::Root::open does). `dsn`: of the database, for records. `keys`: each path begins with "/<key of a
  // token>/", and is valid as long as the token. `hosts`: accepted names of the server; empty: any.
  Files(const std::filesystem::path& root, const std::string& collection_id, const std::string& dsn, bool keys,
        std::vector<std::string> hosts);
  ~Files();
  Response answer(const Request& request) const;
  // Opens a file of the archive for reading; empty: there is none. Throws Error(unavailable) without the archive.
  base::Fd open(const std::string& path) const;
  // Returns a key for a user that a proxy names, valid in this process until a day after the last call; empty: files
  // have no keys.
  std::string key_of_user(const std::string& user) const;
  // Path of a file of the archive at this origin, percent-encoded. `key`: of the token that is shown it, or a link.
  std::string href(const std::string& path, const std::string& key) const;

private:
  Response record(const RecordPath& path) const;
  Response file(std::string path, const std::string& key) const;
  Response shared(const Request& request, const std::string& path) const;

  std::filesystem::path directory_;
  std::unique_ptr<archive::Root> bucket_;
  std::unique_ptr<Connections> connections_;
  class Keys;
  std::unique_ptr<Keys> keys_;
  std::vector<std::string> hosts_;
};

// Archived documents that open no connection. A content security policy is not enough: a browser connects to the host
// of a <link rel=preconnect>, or looks up its name, regardless of the policy, and to that of a frame before it checks
// the policy. Pure; any thread.

// The document, of the same length, with all links but style sheets and icons, and all frames but those of near files,
// made elements without a meaning, and without the attributes that hold a further document. HTML or XML in an encoding
// that has ASCII in it.
std::string quiet_markup(std::string text);
// Returns true if it may be in another encoding, in which quiet_markup() would not see the tags that a browser sees.
bool hides_tags(std::string_view text);

} // namespace holdfast::serve
