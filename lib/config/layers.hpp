#pragma once
// The layers that settings are read from, before they are merged. Internal to lib/config. Values; any thread.

#include "lib/config/settings.hpp"

namespace holdfast::config {

// A setting found in a layer. Its key is known and its text fits the type of the key.
struct Setting {
  const Key* key;
  Value value;
};

struct YamlFile {
  std::vector<Setting> settings;
  std::map<std::string, Value> hook_options;
};

// nullptr if there is no such key.
const Key* find_key(std::string_view name);

// Reads and checks a whole file. Throws Error(configuration) naming file and line.
YamlFile read_yaml_file(const std::filesystem::path& file);

// Settings among HOLDFAST_... variables. Throws Error(configuration) naming the variable.
std::vector<Setting> read_environment(const std::map<std::string, std::string>& environment);

// Throws Error(configuration), beginning with the origin, if the text of `value` is not one for `key`.
void check_value(const Key& key, const Value& value);

// The key of `known` that was meant by another name; empty: none is near.
std::string nearest_key(std::string_view name, const std::vector<std::string>& known);
// Throws Error(configuration) about the unknown `name`, spelled as the user did, with the nearest of `known` as hint.
[[noreturn]] void throw_unknown(std::string_view origin, std::string_view name, const std::vector<std::string>& known);

} // namespace holdfast::config
