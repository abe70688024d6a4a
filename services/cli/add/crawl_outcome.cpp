#include "services/cli/add/crawl_outcome.hpp"

#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/duration.hpp"
#include "lib/maintenance/crawl_page.hpp"
#include "lib/store/catalog/view.hpp"
#include "lib/store/live.hpp"
#include "services/cli/terminal/output.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace holdfast::cli {

namespace {

constexpr std::chrono::seconds kTimeout{20};

} // namespace

void print_crawl_outcome(Context& context, const std::string& crawl_id) {
  auto& connection = context.connection();
  if (context.json()) {
    store::ListQuery query;
    query.by("crawl", crawl_id);
    query.limit = 100000;
    print_records(store::list_json(connection, query), "Snapshot");
    query.view = "crawls";
    for (const auto& line : store::list_json(connection, query)) {
      auto json = nlohmann::ordered_json::parse(line);
      json["page"] = archive::shown(context.archive_root(), maintenance::crawl_page_path(crawl_id));
      print_record("Crawl", json);
    }
    std::cout.flush();
    return;
  }
  const auto crawl = store::crawl(connection, crawl_id);
  std::cout << "crawl " << crawl_id << ": " << (crawl.status == "sealed" ? crawl.outcome : crawl.status) << ", "
            << crawl.total << (crawl.total == 1 ? " snapshot" : " snapshots") << ", "
            << base::format_size(static_cast<std::uint64_t>(crawl.bytes));
  if (crawl.partial > 0) std::cout << ", " << crawl.partial << " partial";
  if (crawl.failed > 0) std::cout << ", " << crawl.failed << " failed";
  if (crawl.cancelled > 0) std::cout << ", " << crawl.cancelled << " cancelled";
  if (!crawl.stop_reason.empty()) std::cout << " (stopped by " << crawl.stop_reason << ")";
  std::cout << '\n';
  if (crawl.status == "sealed")
    std::cout << "  page: " << archive::shown(context.archive_root(), maintenance::crawl_page_path(crawl_id)) << '\n';
  std::cout << "  more: holdfast show " << crawl_id << std::endl;
}

bool UnableWatch::look(pg::Connection& connection, const std::string& crawl_id) {
  auto found = store::crawl_lacks(connection, crawl_id);
  const auto now = std::chrono::steady_clock::now();
  if (found.what.empty() || lacking_.empty()) since_ = now;
  crawl_ = crawl_id;
  lacking_ = std::move(found.what);
  unable_ = !lacking_.empty() && (!found.may_pass || now - since_ >= kTimeout);
  return unable_;
}

void UnableWatch::check() const {
  if (unable_)
    throw base::Error(base::ErrorClass::unavailable, "no worker here can archive it: " + lacking_,
                      "see holdfast doctor; the crawl stays queued: holdfast why " + crawl_);
}

} // namespace holdfast::cli
