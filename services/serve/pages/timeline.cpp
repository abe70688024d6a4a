// The page of a URL: its captures in time, and the comparison of two of them.
#include "lib/archive/diff_page.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <algorithm>
#include <cmath>

namespace holdfast::serve {

namespace {

constexpr int kCapturesShown = 100; // of a URL, on one page
constexpr double kLeast = 0.04;     // height of a bar without a change

std::string percent(double share) {
  if (share <= 0) return "";
  const auto tenths = std::lround(share * 1000);
  return tenths < 1 ? "below 0.1 %"
                    : std::to_string(tenths / 10) +
                          (tenths < 100 && tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") + " %";
}

// "text, 2.3 %, +3 -3 words"; a capture without a comparison: its reason.
std::string change_of(const pg::Row& row) {
  auto text = row["change"].value_or("");
  if (text.empty()) return row["reason"].value_or("not compared");
  if (text == "first" || text == "same") return text;
  if (const auto share = percent(row["share"].value_or(0.0)); !share.empty()) text += ", " + share;
  const auto added = row["words_added"].value_or<std::int64_t>(0),
             removed = row["words_removed"].value_or<std::int64_t>(0);
  return added + removed > 0 ? text + ", +" + number(added) + " −" + number(removed) + " words" : text;
}

// From the oldest to the latest. The height of a bar is the amount of the change.
Html bars(const pg::Result& rows) {
  std::vector<Bar> all;
  for (std::size_t at = rows.size(); at-- > 0;) {
    const auto row = rows[at];
    const auto outcome = row["outcome"].value_or(""), change = row["change"].value_or("");
    // Small changes are the common ones: the root makes them visible.
    const double share = std::sqrt(std::clamp(row["share"].value_or(0.0), 0.0, 1.0));
    const bool quiet = change.empty() || change == "same" || change == "first";
    all.push_back(
        {row.text("at").substr(0, 16) + " UTC: " + change_of(row) + (outcome == "succeeded" ? "" : "; " + outcome),
         "/snapshot/" + row.text("id"),
         {{outcome == "failed"    ? "bad"
           : quiet                ? "mute"
           : outcome == "partial" ? "warn"
                                  : "ok",
           quiet ? kLeast : std::max(share, kLeast * 2)}}});
  }
  return chart({"Captures of this page", "the height is the amount of the change", 1, std::move(all), true});
}

Html compare_box(const std::string& id, const char* name, bool checked) {
  return html::fill(embedded::compare_box_html, {{"id", id}, {"name", name}, {"checked", checked}});
}

Html capture_table(const PageRequest& request, const pg::Result& rows) {
  const bool many = rows.size() > 1;
  Table table({{"Captured", "nw"},
               {"Outcome", "nw"},
               {"Change", "long"},
               {"Size", "n"},
               {many ? "From" : "", "nw"},
               {many ? "To" : "", "nw"}},
              "Captures of this page");
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto row = rows[at];
    const std::string id = row["id"];
    table.row({html::link("/snapshot/" + id, row.text("at").substr(0, 19) + " UTC"),
               state_badge("sealed", row["outcome"].value_or("")), change_of(row),
               size_of(row["bytes"].value_or<std::int64_t>(0)), compare_box(id, "a", at == 1),
               compare_box(id, "b", at == 0)});
  }
  const bool full = static_cast<int>(rows.size()) == kCapturesShown;
  return html::fill(
      embedded::captures_html,
      {{"table", table.html("There is no older capture.")},
       {"many", many},
       {"more", full ? timeline_href(request.parameter("url")) + "&before=" + rows[rows.size() - 1].text("id") : ""}});
}

// A side of the comparison.
struct Side {
  std::string id, url, title, directory, time;
};

std::optional<Side> side_of(const PageRequest& request, const char* name) {
  const auto id = request.parameter(name);
  if (!base::is_uuid(id)) return std::nullopt;
  const auto rows = catalog::list(request.connection, catalog::ListQuery{"snapshots", 1}.by("snapshot", id));
  if (rows.empty()) return std::nullopt;
  const auto row = rows.one();
  return Side{id, row.text("url"), row["title"].value_or(""), row["directory"].value_or(""), captured_at(row)};
}

Html difference(const PageRequest& request, const Side& before, const Side& now) {
  if (!request.links.shown()) return html::Literal("<p class=\"none\">This server has no files of the archive.</p>");
  const auto open = [&](const std::string& path) { return request.links.files->open(path); };
  const auto picture = [&](const std::string& directory) {
    const auto path = directory.empty() ? directory : archive::screenshot_of(open, directory);
    return path.empty() ? path : request.links.file(path);
  };
  try {
    return archive::difference_html(archive::difference(open, before.directory, now.directory),
                                    picture(before.directory), picture(now.directory));
  } catch (const base::Error& error) {
    return html::fill(embedded::problem_html, {{"detail", error.what()},
                                               {"hint", error.hint()},
                                               {"back", timeline_href(now.url)},
                                               {"label", "All captures"}});
  }
}

// Returns what has been learnt as noise on the page.
html::List noise_lines(const PageRequest& request, const std::string& url) {
  html::List lines;
  if (!request.links.shown()) return lines;
  const auto open = [&](const std::string& path) { return request.links.files->open(path); };
  for (const auto row : store::call(request.connection, "noise_of", url))
    for (const auto& line : archive::noise(open, row.text("fingerprint"), row.text("directory")))
      lines.push_back({{"text", line}});
  return lines;
}

} // namespace

std::string timeline_href(std::string_view url) { return "/timeline?url=" + base::percent_encode(url); }

std::optional<Page> timeline_page(const PageRequest& request) {
  const auto url = request.parameter("url");
  const auto rows = store::call(request.connection, "page_history", url, request.before, kCapturesShown);
  if (rows.empty() && !request.before) return std::nullopt;
  Page page{url, "", {}};
  std::string picture, still;
  for (const auto row : rows) {
    if (page.title == url && !row["title"].value_or("").empty()) page.title = row.text("title");
    const bool good = picture.empty() && row["outcome"].value_or("") != "failed";
    if (good) picture = request.links.picture(row);
    if (good && !picture.empty()) still = row.text("id");
  }
  page.sections.push_back(
      {"head",
       html::fill(
           embedded::timeline_html,
           {{"name", page.title},
            {"url", html::outside_link(url, url)},
            {"captures",
             html::counted(rows.empty() ? 0 : static_cast<std::uint64_t>(rows[0].integer("captures")), "capture")},
            {"before", request.before.has_value()},
            {"picture", picture},
            {"still", still},
            {"retry", request.may_change && !rows.empty() ? rows[0].text("id") : ""},
            {"bars", bars(rows)}}),
       "", false});
  if (const auto lines = noise_lines(request, url); !request.before && !lines.empty())
    page.sections.push_back({"noise", html::fill(embedded::noise_html, {{"lines", lines}}), "Noise"});
  page.sections.push_back({"captures", capture_table(request, rows), request.before ? "Older captures" : "Captures"});
  return page;
}

std::optional<Page> compare_page(const PageRequest& request) {
  auto before = side_of(request, "a"), now = side_of(request, "b");
  if (!before || !now) return std::nullopt;
  if (now->time < before->time) std::swap(before, now);
  Page page{"Comparison of " + (now->title.empty() ? now->url : now->title), "", {}};
  page.body = html::fill(embedded::compare_html, {{"name", now->title.empty() ? now->url : now->title},
                                                  {"url", now->url},
                                                  {"other", before->url == now->url ? "" : before->url},
                                                  {"timeline", timeline_href(now->url)},
                                                  {"before", "/snapshot/" + before->id},
                                                  {"now", "/snapshot/" + now->id},
                                                  {"before_time", when(before->time)},
                                                  {"now_time", when(now->time)},
                                                  {"difference", difference(request, *before, *now)}});
  return page;
}

} // namespace holdfast::serve
