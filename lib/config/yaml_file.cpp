#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/number.hpp"
#include "lib/config/layers.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

namespace holdfast::config {

namespace {

using base::Error;
using base::ErrorClass;

constexpr std::string_view kHooks = "hooks";
constexpr int kDeepest = 32; // an alias may refer to the list that holds it

struct DocumentStart : YAML::EventHandler {
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  int line{0};
};

// Reads one file in one pass. Lives on the stack of read_yaml_file().
class FileReader {
public:
  explicit FileReader(const std::filesystem::path& file) : file_(file.string()) {}

  YamlFile read() {
    const YAML::Node document = parse();
    if (!document || document.IsNull()) return {};
    if (!document.IsMap()) fail(document, "this is not a list of \"key: value\"");
    read_section("", document, 0);
    return std::move(result_);
  }

private:
  YAML::Node parse() const {
    errno = 0;
    std::ifstream stream(file_, std::ios::binary);
    std::ostringstream text;
    // An empty file makes << set failbit; a directory opens but cannot be read.
    if (!stream || (stream.peek() != std::ifstream::traits_type::eof() && !(text << stream.rdbuf())) || stream.bad()) {
      throw Error(ErrorClass::configuration,
                  fmt::format("cannot read the settings in {}: {}", file_, base::errno_text(errno)));
    }
    try {
      refuse_second_document(text.str());
      return YAML::Load(text.str());
    } catch (const YAML::Exception& error) {
      throw Error(ErrorClass::configuration, fmt::format("{}:{}: {}", file_, error.mark.line + 1, error.msg));
    }
  }

  // YAML::LoadAll would find one document after the other, without end, in a file that begins with a comma.
  void refuse_second_document(const std::string& text) const {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    DocumentStart start;
    if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return;
    throw Error(ErrorClass::configuration, fmt::format("{}:{}: a second document begins here", file_, start.line),
                "Keep everything before \"---\".");
  }

  std::string origin(const YAML::Node& node) const { return fmt::format("{}:{}", file_, node.Mark().line + 1); }

  [[noreturn]] void fail(const YAML::Node& node, std::string_view message, const std::string& hint = {}) const {
    throw Error(ErrorClass::configuration, fmt::format("{}: {}", origin(node), message), hint);
  }

  // The key of a pair, which must be new in this file. `prefix` is "" or ends with a dot.
  std::string read_name(const std::string& prefix, const YAML::Node& node) {
    if (!node.IsScalar()) fail(node, "a key must be a word");
    std::string name = prefix + node.Scalar();
    const auto [first, inserted] = lines_.emplace(name, node.Mark().line + 1);
    if (!inserted) fail(node, fmt::format("\"{}\" is already set in line {}", name, first->second));
    return name;
  }

  // Is `name` the first part of a key, as "worker" of "worker.snapshots"?
  static bool is_section(const std::string& name) {
    return std::any_of(key_table().begin(), key_table().end(),
                       [&](const Key& key) { return key.name.starts_with(name + "."); });
  }

  void read_section(const std::string& prefix, const YAML::Node& section, int depth) {
    for (const auto& pair : section) {
      const std::string name = read_name(prefix, pair.first);
      if (name == kHooks) {
        read_hook_options(pair.second);
      } else if (const Key* key = find_key(name)) {
        read_setting(*key, pair.first, pair.second);
      } else if (is_section(name) && pair.second.IsMap() && depth < kDeepest) {
        read_section(name + ".", pair.second, depth + 1);
      } else if (is_section(name) && !pair.second.IsNull()) { // every line of a section may be commented out
        fail(pair.second, fmt::format("\"{}\" is a section, not a setting", name),
             fmt::format("Write \"{}:\" and its settings indented below.", name));
      } else if (!is_section(name)) {
        throw_unknown(origin(pair.first), name, known_names());
      }
    }
  }

  static std::vector<std::string> known_names() {
    std::vector<std::string> names{std::string(kHooks)};
    for (const Key& key : key_table())
      names.emplace_back(key.name);
    return names;
  }

  void read_setting(const Key& key, const YAML::Node& name, const YAML::Node& node) {
    Value value{"", origin(name)};
    if (node.IsScalar()) {
      value.text = node.Scalar();
    } else if (node.IsSequence() && key.type == Type::path_list) {
      value.text = read_path_list(key, node);
    } else if (!node.IsNull()) {
      fail(node, fmt::format("{}: this takes one value, not a {}", key.name, node.IsMap() ? "section" : "list"));
    }
    check_value(key, value);
    result_.settings.push_back({&key, std::move(value)});
  }

  std::string read_path_list(const Key& key, const YAML::Node& list) const {
    std::string joined;
    for (const auto& item : list) {
      if (!item.IsScalar()) fail(item, fmt::format("{}: each item must be a path", key.name));
      if (item.Scalar().find(':') != std::string::npos) {
        fail(item, fmt::format("{}: a path in a list cannot contain \":\"", key.name));
      }
      joined.append(joined.empty() ? "" : ":").append(item.Scalar());
    }
    return joined;
  }

  void read_hook_options(const YAML::Node& options) {
    if (options.IsNull()) return;
    if (!options.IsMap()) fail(options, "\"hooks\" takes one NAME: value a line");
    for (const auto& pair : options) {
      read_name("hooks.", pair.first);
      const std::string& name = pair.first.Scalar();
      if (!is_variable_name(name)) {
        fail(pair.first, fmt::format("\"{}\" cannot be the name of a hook option", name),
             "Hooks see options as environment variables: letters, digits and \"_\" only.");
      }
      std::string text;
      if (pair.second.IsScalar()) {
        text = pair.second.Scalar();
      } else if (!pair.second.IsNull()) {
        text = base::json_text(to_json(pair.second, 0));
      }
      if (text.find('\0') != std::string::npos) fail(pair.second, fmt::format("{} holds a NUL character", name));
      result_.hook_options.emplace(name, Value{std::move(text), origin(pair.first)});
    }
  }

  static bool is_variable_name(const std::string& name) {
    const auto in_name = [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), in_name);
  }

  nlohmann::ordered_json to_json(const YAML::Node& node, int depth) const {
    if (depth > kDeepest) fail(node, "this is nested too deeply");
    if (node.IsSequence()) {
      auto list = nlohmann::ordered_json::array();
      for (const auto& item : node)
        list.push_back(to_json(item, depth + 1));
      return list;
    }
    if (node.IsMap()) {
      auto object = nlohmann::ordered_json::object();
      for (const auto& pair : node) {
        if (!pair.first.IsScalar()) fail(pair.first, "a key must be a word");
        object[pair.first.Scalar()] = to_json(pair.second, depth + 1);
      }
      return object;
    }
    return scalar_to_json(node);
  }

  // Converts scalars by YAML 1.2: 5, 1.5, true and null are what they look like unless they stand in quotes.
  static nlohmann::ordered_json scalar_to_json(const YAML::Node& node) {
    if (node.IsNull()) return nullptr;
    const std::string& text = node.Scalar();
    if (node.Tag() == "?") {
      if (text == "true" || text == "false") return text == "true";
      if (const auto number = base::parse_number<std::int64_t>(text)) return *number;
      const bool decimal = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
      if (const auto number = base::parse_number<double>(text); decimal && number) return *number;
    }
    return text;
  }

  std::string file_;
  std::map<std::string, int> lines_; // of each key, to find the second one
  YamlFile result_;
};

} // namespace

YamlFile read_yaml_file(const std::filesystem::path& file) { return FileReader(file).read(); }

} // namespace holdfast::config
