// Checks texts against the types of keys, with messages for wrong ones.

#include "lib/base/error.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/config/layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::config {

namespace {

using base::Error;
using base::ErrorClass;

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Formats a number of the key's unit for users.
std::string written(const Key& key, std::int64_t number) {
  if (key.type == Type::duration) return base::format_duration(std::chrono::milliseconds(number));
  if (key.type == Type::size) return base::format_size(static_cast<std::uint64_t>(number));
  return std::to_string(number);
}

// The value as a number of the key's unit. Throws Error(configuration) that does not name the origin yet.
std::int64_t parse_number(const Key& key, const std::string& text) {
  if (key.type == Type::duration) return base::parse_duration(text).count();
  if (key.type == Type::size) return static_cast<std::int64_t>(base::parse_size(text)); // at most 2^53
  if (const auto number = base::parse_number<std::int64_t>(text)) return *number;
  throw Error(ErrorClass::configuration, fmt::format("\"{}\" is not a whole number", text));
}

void check_bounds(const Key& key, const std::string& text) {
  const std::int64_t number = parse_number(key, text);
  if (key.minimum == 0 && key.maximum == 0) return;
  if (number >= key.minimum && number <= key.maximum) return;
  throw Error(ErrorClass::configuration, fmt::format("{} is out of bounds", text),
              fmt::format("It may be from {} to {}.", written(key, key.minimum), written(key, key.maximum)));
}

void check_choice(const Key& key, const std::string& text) {
  if (key.choices.empty()) return;
  std::string_view rest = key.choices;
  while (!rest.empty()) {
    const std::string_view choice = rest.substr(0, rest.find('|'));
    if (choice == text) return;
    rest.remove_prefix(std::min(rest.size(), choice.size() + 1));
  }
  std::string list(key.choices);
  for (auto bar = list.find('|'); bar != std::string::npos; bar = list.find('|', bar))
    list.replace(bar, 1, ", ");
  throw Error(ErrorClass::configuration, fmt::format("\"{}\" is not a choice", text),
              fmt::format("Choose one of {}.", list));
}

// The check of check_value(), with messages that do not name origin and key yet.
void check_text(const Key& key, const std::string& text) {
  // Values become headers, arguments, paths or log lines, where such characters have another meaning.
  for (std::string_view rest = text; !rest.empty();) {
    const auto character = base::first_character(rest);
    if (base::is_unprintable(character.code) || base::utf8_length(rest) == 0)
      throw Error(ErrorClass::configuration, "it holds a control character, or bytes that are not UTF-8");
    rest.remove_prefix(character.length);
  }
  switch (key.type) {
  case Type::text:
    check_choice(key, text);
    if (key.name == "database.url" && text.starts_with("file:")) {
      throw Error(ErrorClass::configuration, "expected a connection string, not a file",
                  "postgresql://user@host/name; a password file goes into database.password_file");
    }
    return;
  case Type::path:
  case Type::path_list:
    for (auto start = std::size_t{0}; start < text.size();) {
      const auto end = key.type == Type::path ? text.size() : std::min(text.find(':', start), text.size());
      const std::string path = text.substr(start, end - start);
      if (path.size() > 1 && path[0] == '~' && path[1] != '/') {
        throw Error(ErrorClass::configuration, fmt::format("\"{}\" names the home of another user", path),
                    "Write that directory out; only \"~/\" is understood.");
      }
      start = end + 1;
    }
    return;
  case Type::boolean:
    if (!base::parse_boolean(text)) {
      throw Error(ErrorClass::configuration, fmt::format("\"{}\" is neither true nor false", text));
    }
    return;
  case Type::integer:
  case Type::duration:
  case Type::size:
    check_bounds(key, text);
    return;
  }
}

} // namespace

const Key* find_key(std::string_view name) {
  const auto& table = key_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Key& key) { return key.name == name; });
  return found == table.end() ? nullptr : &*found;
}

void check_value(const Key& key, const Value& value) {
  try {
    check_text(key, value.text);
  } catch (const Error& error) {
    throw Error(ErrorClass::configuration, fmt::format("{}: {}: {}", value.origin, key.name, error.what()),
                error.hint());
  }
}

std::string nearest_key(std::string_view name, const std::vector<std::string>& known) {
  // "snapshots" is near to "worker.snapshots", although it lacks half the letters; so is MAX_TOTAL_WORKERS, as other
  // programs have it, to "runner.max_total_workers".
  const auto part = base::lower_case(last_part(name));
  const auto same =
      std::find_if(known.begin(), known.end(), [&](const std::string& one) { return last_part(one) == part; });
  return same != known.end() ? *same : base::nearest(name, known);
}

void throw_unknown(std::string_view origin, std::string_view name, const std::vector<std::string>& known) {
  const auto nearest = nearest_key(name, known);
  throw Error(ErrorClass::configuration, fmt::format("{}: there is no setting \"{}\"", origin, name),
              !nearest.empty() ? fmt::format("Did you mean \"{}\"?", nearest)
                               : "`holdfast config` prints every setting there is.");
}

} // namespace holdfast::config
