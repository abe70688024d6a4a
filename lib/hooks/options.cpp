#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/hooks/plugin_options.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <regex>
#include <set>

namespace holdfast::hooks {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::chrono::milliseconds kLongestRun = std::chrono::hours(12);
constexpr int kMostRounds = 8; // of fallbacks and of {VAR}: real plugins need two

template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string shown(double value) { // a bound in a message: "5", "0.5"
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), error == std::errc{} ? end : buffer.data()};
}

[[noreturn]] void fail(const Plugin& plugin, const Property& property, const std::string& value,
                       const std::string& expected) {
  const std::string given =
      property.sensitive || is_secret_key(property.key) ? "the value given (secret)" : "\"" + value + "\"";
  throw Error(ErrorClass::configuration,
              "option " + property.key + " of plugin " + plugin.name + ": " + given + " is not " + expected,
              property.description);
}

bool matches(const std::string& pattern, const std::string& value) {
  // std::regex recurses once a character, and does not support every construct of the schemas' dialect: then the hook
  // itself checks.
  constexpr std::size_t kLongestMatched = 4096;
  if (value.size() > kLongestMatched) return true;
  try {
    return std::regex_search(value, std::regex(pattern, std::regex::ECMAScript));
  } catch (const std::regex_error&) {
    return true;
  }
}

// The value as it goes into the environment. `borrowed`: it was given for a fallback key.
std::string checked(const Plugin& plugin, const Property& property, const std::string& given, bool borrowed) {
  std::string value = property.type == "string" ? given : std::string(base::trimmed(given));
  if (property.type == "boolean") {
    const auto parsed = base::parse_boolean(value);
    if (!parsed) fail(plugin, property, given, "true or false");
    return *parsed ? "True" : "False";
  }
  if (property.type == "integer" || property.type == "number") {
    const bool integer = property.type == "integer";
    const auto parsed = integer ? std::optional<double>(parse_number<long long>(value)) : parse_number<double>(value);
    if (!parsed || !std::isfinite(*parsed)) fail(plugin, property, given, integer ? "a whole number" : "a number");
    const bool too_small = property.minimum && *parsed < *property.minimum;
    const bool too_large = property.maximum && *parsed > *property.maximum;
    if (too_small || too_large) {
      const double bound = too_small ? *property.minimum : *property.maximum;
      if (!borrowed) fail(plugin, property, given, (too_small ? "at least " : "at most ") + shown(bound));
      value = shown(bound);
    }
  }
  if (property.type == "array" || property.type == "object") {
    const auto parsed = nlohmann::json::parse(value, nullptr, false);
    if (property.type == "array" && !parsed.is_array())
      fail(plugin, property, given, "a JSON list such as [\"--quiet\"]");
    if (property.type == "object" && !parsed.is_object()) fail(plugin, property, given, "a JSON object");
    return value;
  }
  const auto& choices = property.enumeration;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
    std::string list;
    for (const std::string& choice : choices)
      list += (list.empty() ? "" : ", ") + choice;
    fail(plugin, property, given, "one of " + list);
  }
  if (!property.pattern.empty() && !matches(property.pattern, value)) {
    fail(plugin, property, given, "of the form " + property.pattern);
  }
  return value;
}

// An option by one of its names. An empty text is a value for a string, and nothing for every other type.
const std::string* given_value(const Property& property, const Options& options) {
  const auto look = [&](const std::string& key) -> const std::string* {
    const auto found = options.find(key);
    const bool usable = found != options.end() && (property.type == "string" || !base::trimmed(found->second).empty());
    return usable ? &found->second : nullptr;
  };
  if (const std::string* value = look(property.key)) return value;
  for (const std::string& alias : property.aliases) {
    if (const std::string* value = look(alias)) return value;
  }
  return nullptr;
}

struct Owned {
  const Property* property{nullptr};
  const Plugin* plugin{nullptr};
};
using Properties = std::map<std::string, Owned>;

// The chain of x-fallback keys, as far as one of them was given explicitly.
const std::string* borrowed_value(const Property& property, const Properties& properties, const Options& options) {
  std::string key = property.fallback;
  for (int round = 0; round < kMostRounds && !key.empty(); ++round) {
    const auto known = properties.find(key);
    if (known == properties.end()) {
      const auto found = options.find(key);
      return found != options.end() && !found->second.empty() ? &found->second : nullptr;
    }
    const std::string* value = given_value(*known->second.property, options);
    if (value != nullptr && !value->empty()) return value;
    key = known->second.property->fallback;
  }
  return nullptr;
}

// Replaces each {NAME} that `lookup` finds. Other braces stay: defaults may hold JSON or regular expressions.
template <typename Lookup>
std::string interpolated(const std::string& text, Lookup lookup) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '{') {
      while (end < text.size() && (std::isupper(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_' ||
                                   std::isdigit(static_cast<unsigned char>(text[end])) != 0)) {
        ++end;
      }
      if (end > at + 1 && end < text.size() && text[end] == '}') {
        if (const std::string* value = lookup(text.substr(at + 1, end - at - 1))) {
          result += *value;
          at = end + 1;
          continue;
        }
      }
    }
    result.push_back(text[at++]);
  }
  return result;
}

const Property* find_property(const Plugin& plugin, const std::string& key) {
  const auto found = std::find_if(plugin.properties.begin(), plugin.properties.end(),
                                  [&](const Property& property) { return property.key == key; });
  return found == plugin.properties.end() ? nullptr : &*found;
}

// Returns whether an option enables or disables the plugin, if one does.
std::optional<bool> enabled_by_option(const Plugin& plugin, const Options& options) {
  const std::string prefix = key_prefix(plugin.name);
  Property property;
  if (const Property* declared = find_property(plugin, prefix + "_ENABLED")) property = *declared;
  property.key = prefix + "_ENABLED";
  property.type = "boolean";
  property.aliases.push_back("USE_" + prefix);
  property.aliases.push_back("SAVE_" + prefix);
  const std::string* value = given_value(property, options);
  if (value == nullptr) return std::nullopt;
  return checked(plugin, property, *value, false) == "True";
}

} // namespace

std::string key_prefix(std::string_view plugin) {
  std::string prefix;
  for (const char letter : plugin) {
    const bool word = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    prefix.push_back(word ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : '_');
  }
  return prefix;
}

std::vector<const Plugin*> with_required_plugins(const PluginSet& plugin_set, const Plugin& plugin) {
  std::vector<const Plugin*> plugins;
  for (const auto& name : plugin_set.with_required(plugin.name))
    if (const Plugin* found = plugin_set.find(name)) plugins.push_back(found);
  return plugins;
}

std::map<std::string, ResolvedOption> resolve_properties(const PluginSet& plugin_set, const Plugin& plugin,
                                                         const Options& options, const Options& globals) {
  Properties properties; // of two plugins with the same key, the nearer one declares it
  for (const Plugin* owner : with_required_plugins(plugin_set, plugin)) {
    for (const Property& property : owner->properties)
      properties.try_emplace(property.key, Owned{&property, owner});
  }

  std::map<std::string, ResolvedOption> resolved;
  std::set<std::string> defaults;
  for (const auto& [key, owned] : properties) {
    const Property& property = *owned.property;
    if (const std::string* value = given_value(property, options)) {
      resolved[key] = {checked(*owned.plugin, property, *value, false), true, &property};
    } else if (const std::string* fallback = borrowed_value(property, properties, options)) {
      resolved[key] = {checked(*owned.plugin, property, *fallback, true), true, &property};
    } else if (const auto global = globals.find(key); global != globals.end()) {
      resolved[key] = {global->second, false, &property};
    } else if (property.has_default) {
      resolved[key] = {property.default_value, false, &property};
      defaults.insert(key);
    }
  }

  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    for (const std::string& key : defaults) {
      std::string text = interpolated(resolved[key].value, [&](const std::string& name) -> const std::string* {
        if (name == key) return nullptr;
        if (const auto found = resolved.find(name); found != resolved.end()) return &found->second.value;
        if (const auto found = options.find(name); found != options.end()) return &found->second;
        const auto found = globals.find(name);
        return found != globals.end() ? &found->second : nullptr;
      });
      constexpr std::size_t kLongestValue = 64u << 10; // two defaults that name each other would grow without end
      if (text == resolved[key].value || text.size() > kLongestValue) continue;
      resolved[key].value = std::move(text);
      changed = true;
    }
    if (!changed) break;
  }
  return resolved;
}

Options resolve_options(const PluginSet& plugin_set, const Plugin& plugin, const Options& options) {
  Options result;
  for (auto& [key, option] : resolve_properties(plugin_set, plugin, options, {}))
    result[key] = option.value;
  return result;
}

namespace {

// <PLUGIN>_<NAME> in options > NAME in options > schema default of <PLUGIN>_<NAME>; a number of seconds.
std::optional<double> seconds_option(const Plugin& plugin, const Options& options, const std::string& name) {
  Property property;
  const std::string key = key_prefix(plugin.name) + "_" + name;
  if (const Property* declared = find_property(plugin, key)) property = *declared;
  property.key = key;
  property.type = "number";
  Property general;
  general.key = name;
  general.type = "number";
  std::string text;
  if (const std::string* own = given_value(property, options)) {
    text = checked(plugin, property, *own, false);
  } else if (const std::string* shared = given_value(general, options)) {
    text = checked(plugin, general, *shared, false);
  } else if (property.has_default) {
    text = property.default_value;
  }
  return parse_number<double>(text);
}

std::chrono::milliseconds in_milliseconds(double seconds) {
  if (seconds * 1000 >= static_cast<double>(kLongestRun.count())) return kLongestRun;
  return std::max(std::chrono::milliseconds(1), std::chrono::milliseconds(static_cast<long long>(seconds * 1000)));
}

} // namespace

std::chrono::milliseconds hook_timeout(const Plugin& plugin, const Options& options) {
  // 0 stands for "as long as it takes" in some schemas; the ceiling holds for it too.
  const double seconds = seconds_option(plugin, options, "TIMEOUT").value_or(60.0);
  return seconds > 0 ? in_milliseconds(seconds) : kLongestRun;
}

std::optional<std::chrono::milliseconds> stall_timeout(const Plugin& plugin, const Options& options) {
  const auto seconds = seconds_option(plugin, options, "STALL_TIMEOUT");
  if (!seconds) return std::nullopt;
  return *seconds > 0 ? in_milliseconds(*seconds) : std::chrono::milliseconds(0);
}

bool plugin_enabled(const Plugin& plugin, const Options& options) {
  return enabled_by_option(plugin, options).value_or(plugin.enabled_by_default);
}

std::vector<std::string> selected_plugins(const PluginSet& plugin_set, const std::vector<std::string>& plugins,
                                          const Options& options) {
  std::vector<std::string> disabled;
  std::vector<std::string> enabled;
  for (const auto& [name, plugin] : plugin_set.plugins()) {
    if (plugin_enabled(plugin, options)) {
      enabled.push_back(name);
    } else if (enabled_by_option(plugin, options)) {
      disabled.push_back(name); // only what was disabled explicitly: a schema's default does not refuse a dependency
    }
  }

  if (!plugins.empty()) return plugin_set.select(plugins, disabled);
  // No plugin was named, so a plugin that cannot run is left out, and no other.
  std::vector<std::string> result;
  for (const std::string& name : enabled) {
    try {
      for (std::string& selected : plugin_set.select({name}, disabled)) {
        if (std::find(result.begin(), result.end(), selected) == result.end()) result.push_back(std::move(selected));
      }
    } catch (const Error&) {
      continue;
    }
  }
  return result;
}

std::vector<std::string> missing_plugins(const PluginSet& plugin_set, const std::vector<std::string>& selected,
                                         const std::vector<std::string>& archived) {
  std::set<std::string> missing;
  for (const Hook* hook : plugin_set.hooks_for(Event::snapshot, selected))
    if (std::find(archived.begin(), archived.end(), hook->plugin->name) == archived.end())
      missing.insert(hook->plugin->name);
  std::set<std::string> wanted;
  for (const std::string& name : selected) {
    const auto closure = plugin_set.with_required(name);
    if (std::any_of(closure.begin(), closure.end(), [&](const auto& one) { return missing.contains(one); }))
      wanted.insert(closure.begin(), closure.end());
  }
  std::vector<std::string> result;
  std::copy_if(selected.begin(), selected.end(), std::back_inserter(result),
               [&](const std::string& name) { return wanted.contains(name); });
  return result;
}

} // namespace holdfast::hooks
