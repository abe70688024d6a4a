#include "services/cli/run/serve_plan.hpp"

#include "lib/base/text/base64.hpp"
#include "services/cli/add/plan.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <mutex>

namespace holdfast::cli {

namespace {

using nlohmann::json;
// The context belongs to one thread at a time.
class RequestPlanner {
public:
  explicit RequestPlanner(Context& context) : context_(context) { context.plugin_set(); }
  store::PlannedCrawl plan(const json& body) {
    const std::lock_guard lock(mutex_);
    return plan_crawl(context_, body,
                      read_request(body.value("urls", std::vector<std::string>()), body.value("text", ""),
                                   base::base64_decode(body.value("file", "")), reading_of(context_, body)));
  }

private:
  Context& context_;
  std::mutex mutex_;
};

} // namespace

std::function<store::PlannedCrawl(const json& body)> plan_of_requests(Context& context) {
  return [planner = std::make_shared<RequestPlanner>(context)](const json& body) { return planner->plan(body); };
}

} // namespace holdfast::cli
