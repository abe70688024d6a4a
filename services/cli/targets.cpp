#include "services/cli/targets.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/url.hpp"
#include "lib/store/view.hpp"
#include "services/cli/input.hpp"
#include "services/cli/output.hpp"

#include <iostream>
#include <map>

namespace holdfast::cli {

namespace {

std::string past(const std::string& action) {
  static const std::map<std::string, std::string, std::less<>> irregular = {
      {"cancel", "cancelled"}, {"drain", "draining"}, {"edit", "changed"}, {"keep", "changed"}, {"forget", "deleted"}};
  const auto found = irregular.find(action);
  return found == irregular.end() ? action + "d" : found->second; // pause, resume, remove
}

} // namespace

void print_change(Context& context, const std::string& action, const std::string& kind, const std::string& id,
                  bool changed) {
  if (context.json())
    std::cout << base::json_text(nlohmann::ordered_json{
                     {"type", "Control"}, {"action", action}, {"kind", kind}, {"target", id}, {"changed", changed}})
              << '\n';
  else
    std::cout << kind << (id.empty() ? "" : " ") << printable(id) << ": "
              << (changed ? past(action) : "nothing to " + action) << '\n';
}

std::string worker_id(pg::Connection& connection, const std::string& given) {
  const auto found = store::find(connection, given);
  if (found.kind != "process")
    throw base::Error(base::ErrorClass::usage, given + " is a " + found.kind + ", not a worker");
  return found.id;
}

std::string crawl_id(pg::Connection& connection, const std::string& given) {
  const auto found = store::find(connection, given);
  if (found.kind != "crawl")
    throw base::Error(base::ErrorClass::usage, given + " is a " + found.kind + ", not a crawl");
  return found.id;
}

// All of them, before anything is done to one.
std::vector<std::string> crawl_ids(pg::Connection& connection, const std::vector<std::string>& given) {
  std::vector<std::string> ids;
  for (const auto& one : read_ids(given))
    ids.push_back(crawl_id(connection, one));
  return ids;
}

} // namespace holdfast::cli
