#include "services/cli/machine/machine_plugins.hpp"

#include "lib/base/error.hpp"
#include "lib/hooks/plugin_set.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSwitches = "plugins.json";

std::map<std::string, std::string> read_options(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) return {};
  const auto json = nlohmann::json::parse(stream, nullptr, false);
  std::map<std::string, std::string> options;
  bool good = json.is_object();
  if (good)
    for (const auto& [key, value] : json.items()) {
      good = good && value.is_string();
      if (value.is_string()) options[key] = value.get<std::string>();
    }
  if (!good)
    throw base::Error(base::ErrorClass::configuration, file.string() + " is not a JSON object of texts",
                      "holdfast plugins update writes it again");
  return options;
}

std::vector<fs::path> sets(const fs::path& data_dir) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(data_dir / "lib", ignored))
    if (fs::is_directory(entry.path() / "plugins", ignored)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace

std::vector<fs::path> machine_plugins(const fs::path& data_dir) {
  auto found = sets(data_dir);
  for (auto& set : found)
    set /= "plugins";
  return found;
}

std::vector<MachineOptions> machine_options(const fs::path& data_dir) {
  std::vector<MachineOptions> all;
  const auto add = [&](const fs::path& file) {
    if (auto options = read_options(file); !options.empty()) all.emplace_back(file, std::move(options));
  };
  add(data_dir / "lib" / kSwitches);
  for (const auto& set : sets(data_dir))
    add(set / "options.json");
  return all;
}

void switch_plugins(const fs::path& data_dir, const std::vector<std::string>& plugins, bool on) {
  const auto file = data_dir / "lib" / kSwitches;
  auto options = read_options(file);
  for (const auto& plugin : plugins)
    options[hooks::key_prefix(plugin) + "_ENABLED"] = on ? "true" : "false";
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const auto next = file.string() + ".new";
  std::ofstream stream(next);
  stream << nlohmann::json(options).dump(2) << '\n';
  stream.close();
  if (stream) fs::rename(next, file, error);
  if (!stream || error) throw base::Error(base::ErrorClass::cannot_create, "cannot write " + file.string());
}

namespace {

struct Script {
  const char* language; // as fontconfig names it
  const char* name;
  const char* package;
};

constexpr std::array<Script, 7> kScripts{{{"zh-cn", "Chinese", "fonts-noto-cjk"},
                                          {"ja", "Japanese", "fonts-noto-cjk"},
                                          {"ko", "Korean", "fonts-noto-cjk"},
                                          {"ar", "Arabic", "fonts-noto-core"},
                                          {"hi", "Devanagari", "fonts-noto-core"},
                                          {"th", "Thai", "fonts-noto-core"},
                                          {"und-zsye", "emoji", "fonts-noto-color-emoji"}}};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

} // namespace

std::vector<FontNeed> font_needs(const RunProgram& run) {
  std::vector<FontNeed> needs;
  // fc-match always has an answer. Without a proportional font it is one of a typewriter.
  const auto general = first_line(run({"fc-match", "--format=%{family}|%{spacing}\n", "sans-serif"}));
  const auto bar = general.find('|');
  const bool proportional = bar != std::string::npos && (bar + 1 == general.size() || general.substr(bar + 1) == "0");
  needs.push_back({"sans-serif font", "fonts-dejavu-core", proportional ? general.substr(0, bar) : std::string()});
  for (const auto& script : kScripts)
    needs.push_back({std::string("font for ") + script.name, script.package,
                     first_line(run({"fc-list", "--format=%{family}\n", std::string(":lang=") + script.language}))});
  return needs;
}

} // namespace holdfast::cli
