#pragma once
// Shared parts of every built-in hook: its settings, its deadline, its directory, its records on stdout and the one
// result.
//
// A hook is a function of a Job that returns a Result for a success and throws an Ending otherwise, so that a success
// is always claimed and never assumed. One hook runs per process, on one thread.

#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/headers.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace holdfast::capture {

inline constexpr int kFirstError = 400; // of the statuses of HTTP
inline constexpr int kNoContent = 204, kResetContent = 205, kPartialContent = 206, kNotModified = 304;
constexpr bool has_no_content(int status) { return status == kNoContent || status == kResetContent; }

using base::lower_case;
using warc::header_of;
using warc::Headers;
using warc::media_type;

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

enum class Status { failed, succeeded, noresults, skipped };
NLOHMANN_JSON_SERIALIZE_ENUM(Status, {{Status::failed, "failed"},
                                      {Status::succeeded, "succeeded"},
                                      {Status::noresults, "noresults"},
                                      {Status::skipped, "skipped"}})

struct Result {
  std::string output; // one line for users
  Json detail;        // null: none
};

// Ends a hook otherwise than by success.
struct Ending {
  Status status{Status::failed};
  std::string reason; // one line for users
  Json detail;
  bool unreachable{false}; // the page cannot be fetched: other hooks need not try
};

inline Ending failed(std::string reason, Json detail = nullptr) {
  return {Status::failed, std::move(reason), std::move(detail), false};
}
inline Ending unreachable(std::string reason, Json detail = nullptr) {
  return {Status::failed, std::move(reason), std::move(detail), true};
}
inline Ending no_results(std::string reason) { return {Status::noresults, std::move(reason), nullptr, false}; }
inline Ending skipped(std::string reason) { return {Status::skipped, std::move(reason), nullptr, false}; }

// Content that need not fit into memory: calls take() for each piece of it.
using Pieces = std::function<void(const std::function<void(std::string_view piece)>& take)>;

class Job {
public:
  // Makes the plugin's directory below SNAP_DIR and changes to it. Throws Ending for a setting that is wrong.
  Job(std::string plugin, std::string url);

  const std::string& plugin() const { return plugin_; }
  const std::string& url() const { return url_; }
  const std::filesystem::path& snapshot() const { return snapshot_; } // the directory of all plugins' directories

  // Settings are environment variables.
  static std::string setting(const char* name, const std::string& otherwise = {});
  static bool flag(const char* name, bool otherwise);
  static double number(const std::string& name, double otherwise);
  static std::uint64_t size(const char* name, const char* otherwise); // "500k", "20m", "1g"
  // Absolute path of an installed program, or the hook is skipped and names the package.
  static std::string program(const char* setting, const std::vector<std::string>& names, const char* package);

  double timeout() const { return timeout_; } // seconds
  double margin() const { return margin_; }   // before the timeout, to keep what was got and to say so
  Clock::time_point deadline() const { return deadline_; }
  double remaining() const; // seconds left for work, at least a moment

  // Writes a file of the own directory whole or not at all.
  void write(const std::string& name, std::string_view bytes) const;
  void write_pieces(const std::string& name, const Pieces& pieces) const;
  void write_json(const std::string& name, const Json& value) const;
  // A small JSON object of another plugin ("headers/headers.json"); an empty object if there is none.
  Json sibling(const std::string& name) const;

  // Records for the worker.
  void report_response(const std::string& url, int status, const std::string& content_type) const;
  // `missing`: URLs that the record lacks, and why.
  void report_resources(std::size_t count, const std::vector<std::pair<std::string, std::string>>& missing) const;
  void report_redirect(const std::string& url, const std::string& location, int status);
  void report_rate_limit(const std::string& host, int status, const std::string& retry_after) const;

private:
  std::string plugin_, url_;
  std::filesystem::path snapshot_;
  double timeout_{60}, margin_{5};
  Clock::time_point deadline_;
  std::set<std::string> redirects_;
};

using base::read_file;
// Writes a file. Returns false, with errno, if it cannot be written; a part of it may be there then.
bool write_file(const std::filesystem::path& path, const Pieces& pieces);

void emit(const Json& record);
void emit_result(Status status, const std::string& output, const Json& detail, const std::string& error);

using base::clean, base::one_line;
std::string upper(std::string text);
std::string json_text(const Json& value, int indent = -1);
// Names in lower case; a name sent twice has its values joined.
Json joined(const Headers& headers);

// Ends the timeout: the hook has done its work, and now waits for its end.
void stop_alarm();

// Called by the handler of SIGTERM before the process ends: must be async-signal-safe.
extern void (*on_stop)();

// Runs `body` as the hook of `plugin` and returns the exit status. A hook that is requested to stop exits with 143 and
// without a result.
int run_hook(const std::string& plugin, const std::string& url, const std::function<Result(Job&)>& body);

} // namespace holdfast::capture
