#include "services/cli/machine/machine_plugins.hpp"

#include "lib/base/error.hpp"
#include "lib/hooks/plugin_set.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
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

} // namespace holdfast::cli
