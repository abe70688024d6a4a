#include "services/worker/hook/capabilities.hpp"

#include "lib/base/text/host.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/member/membership.hpp"
#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace holdfast::worker {

std::string capabilities_json(const Options& options, const BrowserState& browser) {
  const auto& catalog = *options.catalog;
  const auto works = [&](const std::string& name) {
    const auto needed = catalog.with_required(name);
    return browser.starts || std::find(needed.begin(), needed.end(), kBrowserPlugin) == needed.end();
  };
  nlohmann::json can = {{"plugins", nlohmann::json::array()},
                        {"archive", options.archive_root.native().starts_with("s3:") ? "s3" : "directory"},
                        {"only", !options.only_crawls.empty()}}; // works on some crawls: takes no others
  for (const auto& [name, plugin] : catalog.plugins())
    if (catalog.lacking(name).empty() && works(name)) can["plugins"].push_back(name);
  for (const auto& name : hooks::selected_plugins(catalog, "", options.hook_options))
    if (!works(name)) can["lacks"] = "its browser does not start (" + browser.description + ")";
  auto labels = options.labels;
  labels.push_back(base::own_host_name());
  can["persona"] = {{"keys", options.key_ring.key_ids()}, {"labels", labels}};
  if (options.key_ring.empty())
    can["persona"]["lacks"] =
        options.key_ring_problem.empty() ? "persona.key_file is not set" : options.key_ring_problem;
  if (!browser.description.empty()) can["browser"] = (browser.starts ? "" : "does not start: ") + browser.description;
  return store::json_text(can);
}

store::ProcessInfo describe_worker(const Options& options) {
  auto process = member::describe_process("worker", options.kind, options.version, options.slots, options.data_dir);
  process.parent_id = options.parent_id;
  process.capabilities_json = capabilities_json(options, {true, ""});
  return process;
}

} // namespace holdfast::worker
