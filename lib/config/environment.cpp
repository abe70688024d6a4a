#include "lib/base/test_point.hpp"
#include "lib/config/layers.hpp"

namespace holdfast::config {

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

} // namespace holdfast::config
