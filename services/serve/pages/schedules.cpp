#include "lib/store/catalog/view.hpp"
#include "services/serve/pages.hpp"
#include "services/serve/parts.hpp"

namespace holdfast::serve {

std::optional<Page> schedules_page(const PageRequest& request) {
  std::vector<Table::Column> columns{{"Schedule", "long"}, {"Every", "nw"}, {"State", "nw"},
                                     {"Next", "nw"},       {"Runs", "n"},   {"Last", "nw"}};
  if (request.may_change) columns.push_back({"Change", ""});
  Table table(columns, "Schedules");
  const auto rows = store::list(request.connection, {"schedules", 1000});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const std::string id = row["id"], label = row["label"].value_or("");
    const bool paused = row.text("state") == "paused";
    std::vector<html::Value> cells{label.empty() ? row["first_url"].value_or("") : label,
                                   row.text("every") + " (" + row.text("time_zone") + ")",
                                   row.text("state"),
                                   when(row["next_run"].value_or("")),
                                   row["runs"].value_or("0"),
                                   row["last_outcome"].value_or("")};
    if (request.may_change)
      cells.emplace_back(buttons({{"runSchedule", "Run now", id},
                                  {paused ? "resumeSchedule" : "pauseSchedule", paused ? "Resume" : "Pause", id},
                                  {"removeSchedule", "Remove", id, {}, true}},
                                 request.here));
    table.row(std::move(cells));
  }
  return Page{"Schedules", "Schedules", {{"schedules", table.html("No schedules."), "", false}}};
}

} // namespace holdfast::serve
