#include "services/cli/command/fields.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/hooks/environment.hpp"

#include <algorithm>
#include <vector>

namespace holdfast::cli {

namespace {

std::string flags_of(const catalog::Field& field) {
  if (!field.flags.empty()) return std::string(field.flags);
  std::string flags = "--" + std::string(field.name);
  std::replace(flags.begin(), flags.end(), '_', '-');
  return flags;
}

// Checks each value; the message follows the option's name.
CLI::Validator fits(const nlohmann::json& schema) {
  if (schema.contains("enum")) return CLI::IsMember(schema["enum"].get<std::vector<std::string>>());
  return {[&schema](std::string& given) -> std::string {
            try {
              catalog::check_schema("", schema, given);
              return {};
            } catch (const base::Error& error) {
              return std::string(error.what()).substr(2);
            }
          },
          "", ""};
}

nlohmann::json members_of(const std::string& flags, const std::vector<std::string>& given) {
  auto members = nlohmann::json::object();
  for (const auto& text : given) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw base::Error(base::ErrorClass::usage, flags + " " + text + ": not NAME=VALUE",
                        "for example " + flags + " WGET_TIMEOUT=120");
    members[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return members;
}

} // namespace

CLI::Option* add_field(CLI::App& command, const catalog::Field& field, const std::shared_ptr<nlohmann::json>& given) {
  const auto& schema = catalog::schema_of(field);
  const auto& type = schema["type"];
  const auto flags = flags_of(field);
  const std::string name(field.name), what(field.what);
  const auto take = [given, name](const auto& value) { (*given)[name] = value; };
  using Texts = std::vector<std::string>;
  if (type == "boolean")
    return command.add_flag_function(
        flags, [take](std::int64_t count) { take(count > 0); }, what);
  if (type == "integer")
    return command.add_option_function<std::int64_t>(flags, take, what)
        ->check(number(schema["minimum"].get<std::int64_t>(), std::optional(schema["maximum"].get<std::int64_t>())));
  if (type == "object")
    return command
        .add_option_function<Texts>(
            flags, [take, flags](const Texts& texts) { take(members_of(flags, texts)); }, what)
        ->allow_extra_args(false);
  if (type == "array")
    return command
        .add_option_function<Texts>(
            flags,
            [take, &schema](const Texts& texts) {
              take(schema.contains("x-commas") ? base::split(base::join(texts, ","), ",") : texts);
            },
            what)
        ->allow_extra_args(false)
        ->check(fits(schema["items"]));
  return command.add_option_function<std::string>(flags, take, what)->check(fits(schema));
}

void check_option_name(const hooks::PluginSet& plugin_set, const std::string& name) {
  if (plugin_set.plugins().empty()) return;
  const auto known = hooks::crawl_may_set(plugin_set);
  if (known.contains(name)) return;
  std::string owner; // the plugin that the name begins with, the longest
  std::vector<std::string> of_owner;
  for (const auto& [plugin_name, plugin] : plugin_set.plugins()) {
    const auto prefix = hooks::key_prefix(plugin_name);
    if (!name.starts_with(prefix + "_") || plugin_name.size() < owner.size()) continue;
    owner = plugin_name;
    of_owner.clear();
    for (const auto& property : plugin.properties)
      if (!property.workers_own) of_owner.push_back(property.key);
  }
  const auto near = base::nearest(name, {known.begin(), known.end()});
  std::string hint;
  if (!near.empty()) hint = "did you mean " + near + "? ";
  if (!of_owner.empty())
    hint += "plugin " + owner + " has " + base::join(of_owner, ", ");
  else {
    std::vector<std::string> plugins;
    for (const auto& [plugin_name, plugin] : plugin_set.plugins())
      plugins.push_back(plugin_name);
    hint += "holdfast config --plugin NAME lists the options of " + base::join(plugins, ", ");
  }
  throw base::Error(base::ErrorClass::usage, "--option " + name + ": no plugin has such an option that a crawl may set",
                    hint);
}

} // namespace holdfast::cli
