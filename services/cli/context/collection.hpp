#pragma once
// The collection that a command reads and changes: a database (database.cpp), or a server of Holdfast over HTTP
// (server.cpp) if the setting `server` names one. A command that uses nothing else works with both, in the same words.
// Owned by the Context; main thread.

#include "lib/base/file.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/find.hpp"
#include "lib/store/text.hpp"
#include "services/cli/add/input.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

class Context;

struct AddedCrawl {
  std::string id; // empty: everything is archived already
  std::size_t seeds{0};
  std::vector<store::ArchivedSeed> archived{}; // that it leaves out
};

class Collection {
public:
  using Json = nlohmann::ordered_json;

  virtual ~Collection() = default;

  // Rows of a list, as PostgreSQL writes them, and as lines of JSON.
  virtual pg::Result rows(const catalog::ListQuery& query) = 0;
  virtual std::vector<std::string> lines(const catalog::ListQuery& query) = 0;
  // Runs an operation of the table. `new_id`: of what it makes, unless a server chooses one.
  virtual Json run(const catalog::Operation& operation, const std::string& id, const std::string& new_id,
                   const nlohmann::json& body) = 0;
  // Adds a crawl. `given`: options of it by name; `read`: its URLs.
  virtual AddedCrawl add(const nlohmann::json& given, ReadSeeds read) = 0;
  // Adds a schedule, or a watch; `given`: also its own fields. Returns its id.
  virtual std::string add_schedule(const nlohmann::json& given, ReadSeeds read) = 0;

  virtual store::Found find(const std::string& name, store::FindAs as = store::FindAs::only) = 0;
  // Pages of a shelf, with all of each as JSON.
  virtual pg::Result shelf_pages(const std::string& shelf, std::int64_t limit) = 0;
  virtual store::Why why(const std::string& name) = 0;
  virtual Json status() = 0;
  // `given`: fields of a search.
  virtual std::vector<Json> search(const nlohmann::json& given) = 0;
  // Events in their order: at most so many behind an id; the last so many.
  virtual std::vector<Json> events_after(std::int64_t id, std::int64_t limit, const std::string& crawl) = 0;
  virtual std::vector<Json> last_events(std::int64_t limit, const std::string& crawl) = 0;

  // Opens a file of a sealed snapshot, by its path below the snapshot's directory. Returns no descriptor if there is
  // none.
  virtual base::Fd open(const std::string& snapshot, const std::string& directory, const std::string& file) = 0;
  // Returns where a user finds the page of a crawl, or of a sealed snapshot with this directory: a file, or a URL.
  virtual std::string page_of_crawl(const std::string& id) = 0;
  virtual std::string page_of_snapshot(const std::string& id, const std::string& directory) = 0;
};

// Connects when something is asked for.
std::unique_ptr<Collection> database_collection(Context& context);
// `url`: of `holdfast serve`. Throws Error(configuration) if the token would be sent unencrypted to another machine.
std::unique_ptr<Collection> server_collection(const std::string& url, const std::string& token);

} // namespace holdfast::cli
