#pragma once
// Answers of a snapshot's WARC files, by URL, for the replay of a page in place of the network. Files are untrusted:
// memory is bounded, and an unreadable record is a missing answer. Used from one thread.

#include "lib/warc/capture.hpp"
#include "services/capture/browser/devtools.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::capture {

class ReplaySource {
public:
  struct Answer {
    int status{0};
    std::string reason, body;
    Headers headers;
  };

  // `records`: an array of what warc::replay_record() makes. `log`: a file that gets a line for each request, its key
  // and URL after "+" (answered) or "-" (missing).
  explicit ReplaySource(const Json& records, std::filesystem::path log = "/dev/null");

  // Returns the first record of this request, again and again, or one that differs only in what players disregard. A
  // whole answer comes before a part, and before one that leads back to the request. nullopt: there is none.
  std::optional<Answer> answer(const Json& request);

private:
  struct Place {
    std::string date, digest, file;
    std::uint64_t offset{0}, length{0};
  };
  std::string alike(const std::string& key) const;
  std::optional<Answer> read(const Place& place, const std::string& method);

  std::map<std::string, std::vector<Place>, std::less<>> by_key_;
  std::multimap<std::string, Place> by_digest_;
  const std::filesystem::path log_;
};

// Answers a request that Chromium holds (Fetch.requestPaused).
void answer_from(ReplaySource& source, DevTools& browser, const Json& paused, const std::string& session);

} // namespace holdfast::capture
