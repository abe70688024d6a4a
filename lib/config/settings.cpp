#include "lib/config/settings.hpp"

#include "lib/base/error.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/config/layers.hpp"

#include <fmt/format.h>

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <regex>

namespace holdfast::config {

namespace {

using base::Error;
using base::ErrorClass;

std::filesystem::path variable_path(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::filesystem::path{} : std::filesystem::path(found->second);
}

// Returns $HOME, or the entry of the user database where a service manager sets none. May be empty.
std::filesystem::path home_directory(const std::map<std::string, std::string>& environment) {
  auto home = variable_path(environment, "HOME");
  if (!home.empty()) return home;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_dir;
  return {};
}

// Returns the first of the usual places that has a file; empty if none has.
std::filesystem::path find_file(const std::map<std::string, std::string>& environment,
                                const std::filesystem::path& home) {
  // The XDG specification: a relative path in the variable is to be ignored.
  auto user_directory = variable_path(environment, "XDG_CONFIG_HOME");
  if (!user_directory.is_absolute() && !home.empty()) user_directory = home / ".config";

  std::vector<std::filesystem::path> candidates{"holdfast.yaml"};
  if (user_directory.is_absolute()) candidates.push_back(user_directory / "holdfast" / "holdfast.yaml");
  candidates.emplace_back("/etc/holdfast.yaml");
  for (const auto& candidate : candidates) {
    std::error_code ignored;
    if (std::filesystem::exists(candidate, ignored)) return candidate;
  }
  return {};
}

// "data_dir" -> "--data-dir".
std::string option_name(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '_'; }, '-');
  return name;
}

std::vector<Setting> read_overrides(const std::vector<std::pair<std::string, std::string>>& overrides) {
  std::vector<Setting> settings;
  for (const auto& [name, text] : overrides) {
    const Key* key = find_key(name);
    if (key == nullptr) {
      std::vector<std::string> known;
      for (const Key& candidate : key_table())
        known.emplace_back(candidate.name);
      throw_unknown("command line", name, known);
    }
    settings.push_back({key, {text, option_name(name)}});
    check_value(*key, settings.back().value);
  }
  return settings;
}

// The path or paths in `value`, those that are relative taken from `directory`.
std::vector<std::filesystem::path> resolve(const Key& key, const Value& value, const std::filesystem::path& directory,
                                           const std::filesystem::path& home) {
  std::vector<std::filesystem::path> paths;
  for (std::size_t start = 0; start < value.text.size();) {
    const auto colon = key.type == Type::path_list ? value.text.find(':', start) : std::string::npos;
    const auto end = std::min(colon, value.text.size());
    const std::string text = value.text.substr(start, end - start);
    start = end + 1;
    if (text.empty()) continue;
    const bool in_home = text == "~" || text.starts_with("~/");
    if (in_home && home.empty()) {
      throw Error(ErrorClass::configuration,
                  fmt::format("{}: {}: there is no home directory to put for \"~\"", value.origin, key.name),
                  "Set HOME, or write the path out.");
    }
    if (key.name == "archive.root" && text.starts_with("s3://")) { // no directory at all
      paths.emplace_back(text);
      continue;
    }
    auto path =
        directory / (in_home ? home / text.substr(std::min<std::size_t>(2, text.size())) : std::filesystem::path(text));
    path = path.lexically_normal();
    if (!path.has_filename() && path.has_relative_path()) path = path.parent_path(); // "/srv/" is "/srv"
    paths.push_back(std::move(path));
  }
  return paths;
}

const Key& require_key(std::string_view name, std::initializer_list<Type> types) {
  const Key* key = find_key(name);
  if (key != nullptr && std::find(types.begin(), types.end(), key->type) != types.end()) return *key;
  throw Error(ErrorClass::bug, fmt::format("the setting \"{}\" {}", name,
                                           key == nullptr ? "does not exist" : "is asked for as another type"));
}

} // namespace

Settings Settings::load(const std::filesystem::path& file, const std::map<std::string, std::string>& environment,
                        const std::vector<std::pair<std::string, std::string>>& overrides) {
  Settings settings;
  const auto home = home_directory(environment);
  const auto working_directory = std::filesystem::current_path();

  settings.file_ = file.empty() ? find_file(environment, home) : file;
  YamlFile yaml;
  if (!settings.file_.empty()) yaml = read_yaml_file(settings.file_);
  settings.hook_options_ = std::move(yaml.hook_options);

  std::vector<Setting> defaults;
  for (const Key& key : key_table())
    defaults.push_back({&key, {std::string(key.default_value), "default"}});
  // A relative path in a file is relative to that file.
  std::map<std::string_view, std::filesystem::path> directories;
  const auto apply = [&](const std::vector<Setting>& layer, const std::filesystem::path& directory) {
    for (const Setting& setting : layer) {
      settings.values_[std::string(setting.key->name)] = setting.value;
      directories[setting.key->name] = directory;
    }
  };
  apply(defaults, working_directory);
  apply(yaml.settings, working_directory / settings.file_.parent_path());
  apply(read_environment(environment), working_directory);
  apply(read_overrides(overrides), working_directory);

  // Last, so that a "~/" that another layer replaced needs no home.
  for (const Key& key : key_table()) {
    if (key.type != Type::path && key.type != Type::path_list) continue;
    settings.paths_[std::string(key.name)] = resolve(key, settings.value(key.name), directories[key.name], home);
  }
  const auto data_dir = settings.path("data_dir");
  if (data_dir.empty()) {
    throw Error(ErrorClass::configuration,
                fmt::format("{}: data_dir: it must not be empty", settings.value("data_dir").origin));
  }
  if (settings.path("work_dir").empty()) settings.paths_["work_dir"] = {data_dir / "work"};
  if (settings.path("archive.root").empty()) settings.paths_["archive.root"] = {data_dir / "archive"};
  return settings;
}

const Value& Settings::value(std::string_view key) const {
  const auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  throw Error(ErrorClass::bug, fmt::format("the setting \"{}\" does not exist", key));
}

void Settings::add_hook_options(const std::map<std::string, std::string>& options, const std::string& origin) {
  for (const auto& [name, text] : options)
    hook_options_.try_emplace(name, Value{text, origin});
}

const std::string& Settings::text(std::string_view key) const { return value(key).text; }

std::filesystem::path Settings::path(std::string_view key) const {
  require_key(key, {Type::path});
  const auto found = paths_.find(key);
  return found == paths_.end() || found->second.empty() ? std::filesystem::path{} : found->second.front();
}

std::vector<std::filesystem::path> Settings::path_list(std::string_view key) const {
  require_key(key, {Type::path_list});
  const auto found = paths_.find(key);
  return found == paths_.end() ? std::vector<std::filesystem::path>{} : found->second;
}

bool Settings::boolean(std::string_view key) const {
  require_key(key, {Type::boolean});
  return base::parse_boolean(text(key)).value(); // checked by load()
}

std::int64_t Settings::integer(std::string_view key) const {
  require_key(key, {Type::integer});
  return base::parse_number<std::int64_t>(text(key)).value(); // checked by load()
}

std::chrono::milliseconds Settings::duration(std::string_view key) const {
  require_key(key, {Type::duration});
  return base::parse_duration(text(key));
}

std::uint64_t Settings::size(std::string_view key) const {
  require_key(key, {Type::size});
  return base::parse_size(text(key));
}

namespace {

constexpr std::string_view kPrefix = "HOLDFAST_";

// Variables of ours that are no settings: the mark that every child carries, and switches of the test suites.
bool is_reserved(std::string_view variable) {
  return variable == "HOLDFAST_COOKIE" || base::is_test_variable(variable);
}

} // namespace

std::string environment_name(std::string_view key) {
  std::string name(kPrefix);
  for (const char c : key) {
    const bool lower = c >= 'a' && c <= 'z';
    name += lower ? static_cast<char>(c - 'a' + 'A') : c == '.' ? '_' : c;
  }
  return name;
}

std::vector<Setting> read_environment(const std::map<std::string, std::string>& environment) {
  std::map<std::string, const Key*> keys;
  std::vector<std::string> names;
  for (const Key& key : key_table()) {
    names.push_back(environment_name(key.name));
    keys.emplace(names.back(), &key);
  }

  std::vector<Setting> settings;
  for (auto entry = environment.lower_bound(std::string(kPrefix)); entry != environment.end(); ++entry) {
    const auto& [variable, text] = *entry;
    if (!variable.starts_with(kPrefix)) break;
    if (is_reserved(variable)) continue;
    const auto key = keys.find(variable);
    if (key == keys.end()) throw_unknown("environment", variable, names);
    settings.push_back({key->second, {text, "environment " + variable}});
    check_value(*key->second, settings.back().value);
  }
  return settings;
}

namespace {

// Returns the time, besides kill_grace, that a worker needs to end its hooks: notice, signal, reap. With a lease
// shorter than a minute, a late kill costs less, so a twelfth of the lease is enough.
std::chrono::milliseconds stop_overhead(std::chrono::milliseconds lease) {
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(5), lease / 12);
}

// "lease is 60s (default), margin is 20s (/etc/holdfast.yaml:3)".
std::string describe(const Settings& settings, std::initializer_list<std::string_view> keys) {
  std::string description;
  for (const std::string_view key : keys) {
    const Value& value = settings.value(key);
    description += fmt::format("{}{} is {} ({})", description.empty() ? "" : ", ", key, value.text, value.origin);
  }
  return description;
}

} // namespace

void check_lease_rule(const Settings& settings) {
  const auto lease = settings.duration("lease");
  const auto heartbeat = settings.duration("heartbeat");
  const auto margin = settings.duration("margin");
  if (2 * heartbeat > lease - margin) {
    throw Error(ErrorClass::configuration,
                "two heartbeats must fit into lease - margin: " + describe(settings, {"heartbeat", "lease", "margin"}),
                "One lost heartbeat must not cost a worker its work: lengthen lease, or shorten heartbeat or margin.");
  }
  if (const auto overhead = stop_overhead(lease); settings.duration("kill_grace") + overhead >= margin) {
    throw Error(ErrorClass::configuration,
                fmt::format("kill_grace + {} must be less than margin: ", base::format_duration(overhead)) +
                    describe(settings, {"kill_grace", "margin"}),
                "A cut-off worker must have ended its hooks before others take its work: lengthen margin, or shorten "
                "kill_grace.");
  }
  if (2 * settings.duration("runner.heartbeat") > settings.duration("runner.lease")) {
    throw Error(
        ErrorClass::configuration,
        "two heartbeats must fit into runner.lease: " + describe(settings, {"runner.heartbeat", "runner.lease"}),
        "One lost heartbeat must not cost the runner its lead: lengthen runner.lease or shorten runner.heartbeat.");
  }
}

std::string keep_rule(const Settings& settings) {
  static const std::regex kRule("(none|1 per (.+)) after (.+)");
  const auto& text = settings.text("archive.keep_unchanged");
  const auto limit = settings.size("archive.max_bytes");
  std::vector<std::string> rule;
  std::smatch parts;
  if (std::regex_match(text, parts, kRule)) {
    const auto seconds = [](const std::string& time) {
      return std::chrono::duration_cast<std::chrono::seconds>(base::parse_duration(time)).count();
    };
    const auto every = parts[2].matched ? seconds(parts[2]) : 0;
    if (parts[2].matched && every <= 0)
      throw Error(ErrorClass::configuration, describe(settings, {"archive.keep_unchanged"}) + " has no period",
                  "for example 1 per 7d after 30d");
    rule.push_back(fmt::format(R"("after": {}, "every": {})", seconds(parts[3]), every));
  } else if (text != "all") {
    throw Error(ErrorClass::configuration, describe(settings, {"archive.keep_unchanged"}) + " is no rule",
                "all, or for example 1 per 7d after 30d; none after 90d");
  }
  if (limit > 0) rule.push_back(fmt::format(R"("max_bytes": {})", limit));
  return rule.empty() ? "" : "{" + base::join(rule, ", ") + "}";
}

} // namespace holdfast::config
