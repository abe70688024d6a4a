#pragma once
// Worker settings: one table of keys, each with type, default, help and whether it is secret; each value remembers
// where it came from. Layers, later wins: default < YAML file < environment (HOLDFAST_...) < command line. A setting
// has one name in two spellings: "urls.allow_private" and HOLDFAST_URLS_ALLOW_PRIVATE. Read once at start; immutable
// afterwards; any thread. Hook options (WGET_TIMEOUT=...) are not settings: they live under "hooks:" in YAML and travel
// as strings.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::config {

enum class Type { text, path, path_list, boolean, integer, duration, size };

struct Key {
  std::string_view name; // "worker.snapshots"
  Type type;
  std::string_view default_value;      // as written in YAML; may be ""
  bool secret;                         // printed as "(set)" or "(unset)"
  std::string_view help;               // one line, with the unit
  std::int64_t minimum{0}, maximum{0}; // for integer/duration(ms)/size; both 0: unbounded
  std::string_view choices{};          // for text: "a|b|c", or "" for anything
};

// Returns every key of Holdfast, in the order of `holdfast config`.
const std::vector<Key>& key_table();
// "worker.snapshots" -> "HOLDFAST_WORKER_SNAPSHOTS".
std::string environment_name(std::string_view key);

struct Value {
  std::string text;   // as given
  std::string origin; // "default", "/etc/holdfast.yaml:12", "environment HOLDFAST_DATA_DIR", "--data-dir"
};

class Settings {
public:
  // Loads the settings. `file`: explicit path, or empty for the first of ./holdfast.yaml,
  // $XDG_CONFIG_HOME/holdfast/holdfast.yaml (or ~/.config/...), /etc/holdfast.yaml. `environment`: that of the process
  // (injected for tests). `overrides`: from the command line, (key, value). Throws Error(configuration) with
  // "file:line: message" for bad YAML, an unknown key (with the nearest known one as hint), a wrong type or a value out
  // of bounds.
  static Settings load(const std::filesystem::path& file, const std::map<std::string, std::string>& environment,
                       const std::vector<std::pair<std::string, std::string>>& overrides);

  // Getters throw Error(bug) for a key that does not exist or has another type.
  const std::string& text(std::string_view key) const; // as written, of any type
  // "~/" expanded and made absolute: from the directory of the YAML file if it is written there, else from the working
  // directory at load(). Empty if unset, but for work_dir and archive.root, which then are directories in data_dir.
  std::filesystem::path path(std::string_view key) const;
  std::vector<std::filesystem::path> path_list(std::string_view key) const; // ":" separated or a YAML list
  bool boolean(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  std::chrono::milliseconds duration(std::string_view key) const;
  std::uint64_t size(std::string_view key) const;
  const Value& value(std::string_view key) const;
  const std::filesystem::path& file() const noexcept { return file_; } // the YAML file read, or empty

  // "hooks:" of the YAML file: scalars as written, lists and maps as JSON. Environment variables that are plugin
  // options are NOT read here: explicit only.
  const std::map<std::string, Value>& hook_options() const noexcept { return hook_options_; }
  // Adds those that are not there yet; `origin`: where they stand.
  void add_hook_options(const std::map<std::string, std::string>& options, const std::string& origin);

private:
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, std::vector<std::filesystem::path>, std::less<>> paths_; // resolved, of path and path_list keys
  std::map<std::string, Value> hook_options_;
  std::filesystem::path file_;
};

// The rules between settings: 2 * heartbeat <= lease - margin, so that one lost heartbeat costs nothing; kill_grace +
// 5s (or a twelfth of lease, if that is less) < margin, so that a cut-off worker is quiet before its work is taken; 2 *
// runner.heartbeat <= runner.lease. Throws Error(configuration) naming the settings, their values and where each comes
// from.
void check_lease_rule(const Settings& settings);

// Returns archive.keep_unchanged and archive.max_bytes as the database reads them, {"after", "every", "max_bytes"} with
// times in seconds; empty: everything is kept. Throws Error(configuration).
std::string keep_rule(const Settings& settings);

} // namespace holdfast::config
