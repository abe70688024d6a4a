#include "lib/hooks/plugin_file.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/hooks/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>

namespace holdfast::hooks {

using base::Error;
using base::ErrorClass;
using nlohmann::json;

namespace {

constexpr std::uintmax_t kLargestFile = 4u << 20;

// Text of the file, and positions in it. The parser keeps no positions, so that the line of a value of a wrong type is
// found by its key: exact unless a plugin uses the same key twice.
class Source {
public:
  explicit Source(std::filesystem::path file) : file_(std::move(file)) {
    std::ifstream stream(file_, std::ios::binary);
    text_.resize(kLargestFile + 1);
    stream.read(text_.data(), static_cast<std::streamsize>(text_.size()));
    if (!stream.eof() && stream.fail()) throw Error(ErrorClass::configuration, file_.string() + ": cannot be read");
    text_.resize(static_cast<std::size_t>(stream.gcount()));
    if (text_.size() > kLargestFile) throw Error(ErrorClass::configuration, file_.string() + ": larger than 4 MiB");
  }

  const std::string& text() const { return text_; }

  [[noreturn]] void fail_at(std::size_t offset, const std::string& message) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text_.size()));
    const auto line = 1 + std::count(text_.begin(), end, '\n');
    throw Error(ErrorClass::configuration, file_.string() + ":" + std::to_string(line) + ": " + message,
                "correct the file, or move the plugin's directory out of plugins.path");
  }

  // `outer` narrows the search: the property that holds `key`, or "".
  [[noreturn]] void fail(const std::string& outer, const std::string& key, const std::string& message) const {
    std::size_t at = 0;
    if (!outer.empty()) at = key_offset(outer, 0);
    if (!key.empty()) at = key_offset(key, at);
    fail_at(at, message);
  }

private:
  std::size_t key_offset(const std::string& key, std::size_t from) const {
    const std::string quoted = '"' + key + '"';
    for (auto at = text_.find(quoted, from); at != std::string::npos; at = text_.find(quoted, at + 1)) {
      const auto next = text_.find_first_not_of(" \t\r\n", at + quoted.size());
      if (next != std::string::npos && text_[next] == ':') return at;
    }
    return from;
  }

  std::filesystem::path file_;
  std::string text_;
};

// Typed access to one object of the file, with errors that name the position.
class ObjectReader {
public:
  ObjectReader(const Source& source, const json& object, std::string name)
      : source_(source), object_(object), name_(std::move(name)) {}

  // Null if absent; null is as good as absent.
  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) wrong(key, "a string");
    return value->get<std::string>();
  }
  bool boolean(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) wrong(key, "true or false");
    return value->get<bool>();
  }
  std::optional<double> number(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) wrong(key, "a number");
    return value->get<double>();
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> result;
    const json* value = find(key);
    if (value == nullptr) return result;
    if (!value->is_array()) wrong(key, "a list of strings");
    for (const json& item : *value) {
      if (!item.is_string()) wrong(key, "a list of strings");
      result.push_back(item.get<std::string>());
    }
    return result;
  }
  [[noreturn]] void wrong(const char* key, std::string_view expected) const {
    std::string subject = "\"" + std::string(key) + "\"";
    if (!name_.empty()) subject += " of " + name_;
    source_.fail(name_, key, subject + " must be " + std::string(expected));
  }

private:
  const Source& source_;
  const json& object_;
  std::string name_;
};

Property read_property(const Source& source, const std::string& key, const json& value) {
  if (!value.is_object()) source.fail({}, key, "property " + key + " must be an object");
  constexpr std::array<std::string_view, 6> kTypes{"string", "boolean", "integer", "number", "array", "object"};
  const ObjectReader reader(source, value, key);
  Property property;
  property.key = key;
  property.type = "string";
  if (const json* type = reader.find("type")) {
    const json* word = type;
    if (type->is_array()) { // ["integer", "null"]: null only means that it may be absent
      const auto named = std::find_if(type->begin(), type->end(), [](const json& item) { return item != "null"; });
      if (named == type->end()) reader.wrong("type", "a JSON schema type");
      word = &*named;
    }
    if (!word->is_string()) reader.wrong("type", "a JSON schema type");
    property.type = word->get<std::string>();
    if (std::find(kTypes.begin(), kTypes.end(), property.type) == kTypes.end()) {
      reader.wrong("type", "one of string, boolean, integer, number, array, object");
    }
  }
  if (const json* value_by_default = reader.find("default")) {
    property.has_default = true;
    property.default_value = environment_text(*value_by_default);
  }
  if (const json* choices = reader.find("enum")) {
    if (!choices->is_array()) reader.wrong("enum", "a list");
    for (const json& choice : *choices) {
      if (!choice.is_null()) property.enumeration.push_back(environment_text(choice));
    }
  }
  property.minimum = reader.number("minimum");
  property.maximum = reader.number("maximum");
  property.pattern = reader.text("pattern");
  property.aliases = reader.texts("x-aliases");
  property.fallback = reader.text("x-fallback");
  property.sensitive = reader.boolean("x-sensitive") || is_secret_key(key);
  property.server_only = reader.text("x-scope") == "server";
  property.workers_own = property.server_only || reader.text("x-scope") == "worker" || is_workers_own(key);
  property.description = reader.text("description");
  return property;
}

RequiredBinary read_binary(const Source& source, const json& value) {
  if (value.is_string()) return {value.get<std::string>(), {}, {}, {}};
  if (!value.is_object()) source.fail({}, "required_binaries", "\"required_binaries\" must be a list of objects");
  const ObjectReader reader(source, value, "required_binaries");
  RequiredBinary binary{reader.text("name"), reader.text("binproviders"), reader.text("min_version"), {}};
  if (const json* overrides = reader.find("overrides"); overrides != nullptr && overrides->is_object())
    binary.overrides = base::json_text(*overrides);
  if (binary.name.empty()) {
    source.fail({}, "required_binaries", "every entry of \"required_binaries\" must have a \"name\"");
  }
  return binary;
}

// "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while ..." -> "syntax error while
// ..."
std::string parser_message(const json::parse_error& error) {
  const std::string_view text = error.what();
  const auto place = text.find(" at line ");
  const auto colon = place == std::string_view::npos ? place : text.find(": ", place);
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

} // namespace

bool is_workers_own(std::string_view key) {
  constexpr std::array<std::string_view, 7> kKinds{"_BINARY", "_ARGS", "_ARGS_EXTRA", "_DIR",
                                                   "_FILE",   "_PATH", "_SANDBOX"};
  return std::any_of(kKinds.begin(), kKinds.end(), [&](std::string_view kind) { return key.ends_with(kind); });
}

bool is_secret_key(std::string_view key) {
  constexpr std::array<std::string_view, 6> kWords{"TOKEN", "SECRET", "API_KEY", "APIKEY", "PASSWORD", "COOKIE_STRING"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return key.find(word) != std::string_view::npos; });
}

bool read_plugin_file(const std::filesystem::path& file, std::string_view runtime, Plugin& plugin) {
  const Source source(file);
  json document;
  try {
    document = json::parse(source.text());
  } catch (const json::parse_error& error) {
    source.fail_at(error.byte == 0 ? 0 : error.byte - 1, "not valid JSON: " + parser_message(error));
  } catch (const json::exception& error) { // a number out of range; the parser has no position
    source.fail_at(0, std::string("not valid JSON: ") + error.what());
  }
  if (!document.is_object()) source.fail_at(0, "must hold a JSON object");
  const ObjectReader reader(source, document, {});

  const auto runtimes = reader.texts("x-runtimes");
  if (!runtimes.empty() && std::find(runtimes.begin(), runtimes.end(), runtime) == runtimes.end()) return false;

  plugin.title = reader.text("title");
  plugin.description = reader.text("description");
  if (reader.find("captures_page") != nullptr) plugin.captures_page = reader.boolean("captures_page");
  plugin.required_plugins = reader.texts("required_plugins");
  plugin.output_mimetypes = reader.texts("output_mimetypes");
  if (const json* binaries = reader.find("required_binaries")) {
    if (!binaries->is_array()) reader.wrong("required_binaries", "a list");
    for (const json& binary : *binaries)
      plugin.required_binaries.push_back(read_binary(source, binary));
  }
  if (const json* properties = reader.find("properties")) {
    if (!properties->is_object()) reader.wrong("properties", "an object");
    for (const auto& [key, value] : properties->items()) {
      plugin.properties.push_back(read_property(source, key, value));
    }
  }
  const std::string enabled = key_prefix(plugin.name) + "_ENABLED";
  for (const Property& property : plugin.properties) {
    if (property.key == enabled && property.has_default) plugin.enabled_by_default = property.default_value != "False";
  }
  return true;
}

} // namespace holdfast::hooks
