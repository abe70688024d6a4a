#include "lib/archive/root.hpp"
#include "lib/catalog/crawl_options.hpp"
#include "lib/catalog/search.hpp"
#include "lib/maintenance/archive_maintenance.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/live.hpp"
#include "services/cli/add/plan.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/context/context.hpp"

namespace holdfast::cli {

namespace {

class Database : public Collection {
public:
  explicit Database(Context& context) : context_(context) {}

  pg::Result rows(const catalog::ListQuery& query) override { return catalog::list(connection(), query); }
  std::vector<std::string> lines(const catalog::ListQuery& query) override {
    return catalog::list_json(connection(), query);
  }

  Json run(const catalog::Operation& operation, const std::string& id, const std::string& new_id,
           const nlohmann::json& body) override {
    const auto by = user_name();
    return operation.run({connection(), id, new_id, body, by, context_.settings().boolean("urls.allow_private")});
  }

  AddedCrawl add(const nlohmann::json& given, ReadSeeds read) override {
    const auto planned = plan_crawl(context_, given, std::move(read));
    auto result = store::crawl_add(connection(), planned);
    return {result.nothing_left ? "" : planned.crawl.id, planned.seeds.size(), std::move(result.archived)};
  }

  std::string add_schedule(const nlohmann::json& given, ReadSeeds read) override {
    const auto schedule = catalog::schedule_of(given, plan_crawl(context_, given, std::move(read)));
    store::schedule_add(connection(), schedule);
    return schedule.id;
  }

  store::Found find(const std::string& name, store::FindAs as) override { return store::find(connection(), name, as); }

  pg::Result shelf_pages(const std::string& shelf, std::int64_t limit) override {
    return store::call(connection(), "shelf_entries", shelf, "shelf", std::nullopt, limit);
  }

  // An answer also while the tables are locked: then that is the reason.
  store::Why why(const std::string& name) override {
    try {
      return store::why(connection(), name);
    } catch (const pg::DatabaseError& error) {
      const auto waits = error.sqlstate() == pg::kLockTimeout ? pg::who_blocks(connection()) : "";
      if (waits.empty()) throw;
      return {"lock", "", "The tables cannot be read: in the database, " + waits,
              nlohmann::json{{"database", waits}}.dump()};
    }
  }

  Json status() override { return store::status_json(connection()); }
  std::vector<Json> search(const nlohmann::json& given) override {
    std::vector<Json> found;
    for (const auto& hit : store::search(connection(), catalog::search_query(given)))
      found.push_back(Json::parse(hit.json));
    return found;
  }

  std::vector<Json> events_after(std::int64_t id, std::int64_t limit, const std::string& crawl) override {
    return store::events_after(connection(), id, limit, crawl).map([](const pg::Row& row) {
      return Json::parse(row.text("json"));
    });
  }
  std::vector<Json> last_events(std::int64_t limit, const std::string& crawl) override {
    std::vector<Json> events;
    for (const auto& line : store::last_events(connection(), limit, crawl))
      events.push_back(Json::parse(line));
    return events;
  }

  base::Fd open(const std::string&, const std::string& directory, const std::string& file) override {
    if (!root_) root_ = archive::Root::open(context_.archive_root(), store::collection_id(connection()), false);
    return root_->open_file(directory + "/" + file);
  }
  std::string page_of_crawl(const std::string& id) override {
    return archive::shown(context_.archive_root(), maintenance::crawl_page_path(id));
  }
  std::string page_of_snapshot(const std::string&, const std::string& directory) override {
    return archive::shown(context_.archive_root(), directory + "/index.html");
  }

private:
  // A lost session is replaced by the next call.
  pg::Connection& connection() { return context_.connection(); }

  Context& context_;
  std::optional<archive::Root> root_; // opened when something is to be read from it
};

} // namespace

std::unique_ptr<Collection> database_collection(Context& context) { return std::make_unique<Database>(context); }

} // namespace holdfast::cli
