#pragma once
// The answers of a snapshot's WARC files, by URL: what a page that is replayed gets in place of the network. Files come
// from strangers: memory is bounded, and what cannot be read is an answer that is missing. Used from one thread.

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

  // `records`: an array of what replay_record() makes. `log`: a file that gets a line for each request, its method and
  // URL after "+" (answered) or "-" (missing).
  explicit ReplaySource(const Json& records, std::filesystem::path log = "/dev/null");

  // The next record of the URL that a page asks for; the last one again and again. nullopt: there is none.
  std::optional<Answer> answer(const std::string& method, const std::string& url);

private:
  struct Place {
    std::string digest, file;
    std::uint64_t offset{0}, length{0};
  };
  struct Captures {
    std::vector<Place> places; // in the order of the files
    std::size_t next{0};
  };

  std::optional<Answer> find(const std::string& method, const std::string& url);

  std::map<std::string, Captures> by_key_;
  std::multimap<std::string, Place> by_digest_;
  const std::filesystem::path log_;
};

// Answers a request that Chromium holds (Fetch.requestPaused).
void answer_from(ReplaySource& source, DevTools& browser, const Json& paused, const std::string& session);

// One in a file of this name, or in one that is open. Without its key, it only lends its payload to revisit records.
Json replay_record(const warc::Capture& capture, const std::string& file);
Json replay_record(const warc::Capture& capture, int file);

} // namespace holdfast::capture
