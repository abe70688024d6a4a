#include "services/cli/serve_plan.hpp"

#include "lib/base/base64.hpp"
#include "services/cli/plan.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <mutex>

namespace holdfast::cli {

namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

LimitOptions limits_of(const json& body) {
  const auto text = [&](const char* name) { return body.value(name, std::string()); };
  LimitOptions limits;
  limits.max_bytes = text("max_bytes");
  limits.max_page_bytes = text("max_page_bytes");
  limits.max_time = text("max_time");
  limits.same = text("same");
  limits.max_age = text("max_age");
  limits.keep = text("keep");
  limits.delay = text("delay");
  limits.patience = text("patience");
  limits.identify = text("identify");
  limits.parallel = body.value("parallel", 0);
  limits.priority = body.value("priority", 0);
  limits.allow = body.value("allow", Texts());
  limits.deny = body.value("deny", Texts());
  limits.only_new = body.value("only_new", false);
  limits.update = body.value("update", false);
  limits.overwrite = body.value("overwrite", false);
  if (body.contains("robots")) limits.robots = body["robots"].get<bool>();
  return limits;
}

AddOptions options_of(const json& body) {
  const auto text = [&](const char* name) { return body.value(name, std::string()); };
  AddOptions options;
  options.requested = true;
  options.inputs = body.value("urls", Texts());
  options.text = text("text");
  options.file = base::base64_decode(text("file"));
  options.parser = body.value("parser", options.parser);
  options.depth = body.value("depth", 0);
  options.max_urls = body.value("max_urls", options.max_urls);
  options.plugins = body.value("plugins", Texts());
  options.tags = body.value("tags", Texts());
  const auto named = body.value("options", json::object());
  for (const auto& [name, value] : named.items())
    options.options.push_back(name + "=" + value.get<std::string>());
  options.label = text("label");
  options.notes = text("notes");
  options.persona = text("persona");
  options.strict = body.value("strict", false);
  options.limits = limits_of(body);
  return options;
}

// The context belongs to one thread at a time.
class RequestPlanner {
public:
  explicit RequestPlanner(Context& context) : context_(context) { context.catalog(); }
  serve::PlannedAdd plan(const json& body) {
    const std::lock_guard lock(mutex_);
    auto planned = plan_crawl(context_, options_of(body));
    return {std::move(planned.crawl), std::move(planned.seeds), planned.left_out, std::move(planned.problems)};
  }

private:
  Context& context_;
  std::mutex mutex_;
};

} // namespace

std::function<serve::PlannedAdd(const json& body)> plan_of_requests(Context& context) {
  return [planner = std::make_shared<RequestPlanner>(context)](const json& body) { return planner->plan(body); };
}

} // namespace holdfast::cli
