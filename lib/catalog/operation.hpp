#pragma once
// Commands to a collection. Each is a row of one table: an operation of the API, a button of the page and a verb of the
// command line are the same row. Immutable; any thread. A command blocks, and may be repeated: the answer then reports
// that nothing changed.

#include "lib/catalog/field.hpp"
#include "lib/pg/connection.hpp"

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::catalog {

struct OperationCall {
  pg::Connection& connection;
  const std::string& id;      // of what it is about: the id of a row, or the name of a host, schedule or webhook
  const std::string& new_id;  // for what it makes; the same if it is repeated
  const nlohmann::json& body; // each member fits its field
  const std::string& by;
  bool allow_private{false};                         // webhooks may lead to private addresses
  int most_batches{std::numeric_limits<int>::max()}; // of a cancelled crawl; workers and the runner close the rest

  std::string text(const char* name) const { return body.value(name, std::string()); } // empty: not given
  std::vector<std::string> texts(std::string_view name) const;
  template <class Value>
  std::optional<Value> given(const char* name) const {
    return body.contains(name) ? std::optional(body[name].get<Value>()) : std::nullopt;
  }
};

// Work of an operation: a function of the database with its arguments ("crawl_pause(:id, :by, :why)": the object, the
// user, members of the body), which returns whether or how much it has changed; or code for more than that.
struct Work {
  constexpr Work(const char* function_in) : function(function_in) {}
  constexpr Work(nlohmann::ordered_json (*code_in)(const OperationCall&)) : code(code_in) {}
  std::string_view function{};
  nlohmann::ordered_json (*code)(const OperationCall&){nullptr};
};

struct Operation {
  std::string_view method, path; // path: below /api/; "{id}" stands for one part
  std::string_view name, summary;
  Work work;
  std::span<const Field> body{};
  // The page's button for it, shown while what it is about is "paused", "sealed" or "open", which is neither; or not in
  // the state behind a "!"; empty: always. final: it cannot be undone.
  std::string_view button{}, when{};
  bool final{false};
  bool makes_crawl{false};            // the answer has its "id", or null
  std::string_view answer{"Changed"}; // schema of the answer: its name in the OpenAPI document

  // Returns the kind of its object: crawl, snapshot, process, host, schedule, webhook, persona, shelf, share or token;
  // empty: no single object.
  std::string_view kind() const noexcept;
  // Returns "changed", and maybe more.
  nlohmann::ordered_json run(const OperationCall& call) const;
};
std::span<const Operation> operations();
// Fields of a watch, beside those of a schedule.
std::span<const Field> watch_fields();
// Fields of the rule that fills a shelf.
std::span<const Field> rule_fields();
// Returns what of a request is of a watch, as store::NewSchedule::watch; null: nothing. Throws Error(usage) for a
// selector or a regular expression that cannot be read.
nlohmann::json watch_of(const nlohmann::json& body);
const Operation& operation(std::string_view name);
// Runs the one of this name; returns whether it has changed anything.
bool command(pg::Connection& connection, std::string_view operation, const std::string& id, const std::string& by,
             const nlohmann::json& body = nlohmann::json::object());

} // namespace holdfast::catalog
