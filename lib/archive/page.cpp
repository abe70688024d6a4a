#include "lib/archive/attempt.hpp"
#include "lib/archive/embedded.hpp"
#include "lib/archive/page_text.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/text/time.hpp"
#include "lib/html/parts.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

namespace holdfast::archive {

namespace {

using html::counted;
using html::fill;
using html::grouped;
using html::href_of_path;
using html::Html;
using Types = std::span<const std::string_view>;

constexpr std::size_t kFilesShown = 4;    // of a result, before "and N more"
constexpr std::size_t kFilesListed = 300; // behind "and N more"; the manifest has them all
constexpr std::size_t kLinksListed = 500; // of the links found on the page

bool has_type(const OutputFile& file, Types types) {
  return std::find(types.begin(), types.end(), file.type) != types.end();
}

std::size_t path_depth(const OutputFile& file) {
  return static_cast<std::size_t>(std::count(file.path.begin(), file.path.end(), '/'));
}

constexpr std::array<std::string_view, 3> kImages = {"image/png", "image/jpeg", "image/webp"};
constexpr std::array<std::string_view, 2> kPages = {"text/html", "application/xhtml+xml"};
constexpr std::array<std::string_view, 1> kPdf = {"application/pdf"};
constexpr std::array<std::string_view, 3> kVideo = {"video/mp4", "video/webm", "video/x-matroska"};
constexpr std::array<std::string_view, 9> kMedia = {"application/pdf", "image/png",  "image/jpeg",
                                                    "image/gif",       "image/webp", "video/mp4",
                                                    "video/webm",      "audio/mpeg", "audio/ogg"};
constexpr std::array<std::string_view, 5> kIcons = {"image/x-icon", "image/vnd.microsoft.icon", "image/png",
                                                    "image/svg+xml", "image/gif"};

bool is_page(const OutputFile& file) { return has_type(file, kPages); }

std::string_view below_plugin(std::string_view path, std::string_view plugin) {
  if (path.size() > plugin.size() + 1 && path.starts_with(plugin) && path[plugin.size()] == '/')
    path.remove_prefix(plugin.size() + 1);
  return path;
}

// Ranks files by interest: the file that the hook named as its output, then documents, then files near the top.
std::tuple<int, std::size_t> rank_of(const OutputFile& file, const ResultView& result) {
  const std::string_view label = below_plugin(file.path, result.plugin);
  if (result.output == label || result.output == file.path) return {0, 0};
  if (is_page(file) || file.type == "application/pdf" || file.type.starts_with("video/") ||
      file.type.starts_with("audio/"))
    return {1, path_depth(file)};
  return {2, path_depth(file)};
}

// The file of a plugin that stands for all of it, of one of these types.
const OutputFile* main_file(const SnapshotView& view, std::string_view plugin, Types types) {
  const OutputFile* best = nullptr;
  std::tuple<int, std::size_t> best_rank;
  for (const ResultView& result : view.results) {
    if (result.plugin != plugin || result.status == "failed") continue;
    for (const OutputFile& file : result.files) {
      if (file.size == 0 || !has_type(file, types)) continue;
      const auto rank = rank_of(file, result);
      if (best != nullptr && best_rank <= rank) continue;
      best = &file;
      best_rank = rank;
    }
  }
  return best;
}

// Lists ways to view the page, best first: one click each.
html::List ways(const SnapshotView& view) {
  struct Way {
    std::string_view plugin;
    Types types;
    std::string_view word;
  };
  static constexpr std::array<Way, 10> kWays = {{{"singlefile", kPages, "Single file"},
                                                 {"readability", kPages, "Reader view"},
                                                 {"screenshot", kImages, "Screenshot"},
                                                 {"pdf", kPdf, "PDF"},
                                                 {"wget", kPages, "Mirror"},
                                                 {"dom", kPages, "DOM"},
                                                 {"browser", kMedia, "File"},
                                                 {"ytdlp", kVideo, "Video"},
                                                 {"mercury", kPages, "Article"},
                                                 {"defuddle", kPages, "Article"}}};
  html::List list;
  for (const Way& way : kWays)
    if (const OutputFile* file = main_file(view, way.plugin, way.types))
      list.push_back({{"href", href_of_path(file->path)}, {"word", way.word}});
  return list;
}

struct Preview {
  Html html;          // empty if no hook made a screenshot or a page
  bool beside{false}; // large enough for a column of its own
};

Preview preview_of(const SnapshotView& view) {
  if (const OutputFile* image = main_file(view, "screenshot", kImages))
    return {fill(embedded::screenshot_html,
                 {{"href", href_of_path(image->path)}, {"size", base::format_size(image->size)}}),
            true};
  if (const OutputFile* page = main_file(view, "singlefile", kPages))
    return {fill(embedded::frame_html, {{"href", href_of_path(page->path)}, {"live", false}}), true};
  // Such a page may load images and styles from its origin; opening this page must not connect there unasked.
  for (const std::string_view plugin : {"dom", "wget"})
    if (const OutputFile* page = main_file(view, plugin, kPages))
      return {fill(embedded::frame_html, {{"href", href_of_path(page->path)}, {"live", true}}), false};
  return {};
}

Html facts_of(const SnapshotView& view) {
  constexpr auto kWide = html::Facts::Width::wide;
  html::Facts facts;
  facts.add("Captured", html::time_element(view.ended_at.empty() ? view.started_at : view.ended_at), kWide);
  if (view.files > 0)
    facts.add("Kept", html::with_sub(base::format_size(view.bytes), "in " + counted(view.files, "file")));
  add_facts(facts, view.facts);
  facts.add("Depth", html::with_sub(std::to_string(view.depth), view.depth == 0 ? "a seed" : ""));
  facts.add("Worker", view.worker);
  if (!view.bookmarked_at.empty()) facts.add("Bookmarked", html::time_element(view.bookmarked_at));
  facts.add("Imported from", view.source);
  facts.add("Tags", tag_list(view.tags), kWide);
  return facts.html();
}

html::Fields file_item(const OutputFile& file, const std::string& plugin) {
  return {{"href", href_of_path(file.path)},
          {"label", below_plugin(file.path, plugin)},
          {"size", base::format_size(file.size)}};
}

// Files of a result, best first: those shown, those behind "and N more", and how many of these.
struct FileLists {
  html::List shown, folded;
  std::size_t folded_count{0}, unlisted{0};
};

FileLists files_of(const ResultView& result) {
  std::vector<const OutputFile*> files;
  files.reserve(result.files.size());
  for (const OutputFile& file : result.files)
    files.push_back(&file);
  std::stable_sort(files.begin(), files.end(),
                   [&](const OutputFile* a, const OutputFile* b) { return rank_of(*a, result) < rank_of(*b, result); });

  // A single file behind "and 1 more" would take the same space.
  const std::size_t shown = files.size() <= kFilesShown + 1 ? files.size() : kFilesShown;
  const std::size_t listed = std::min(files.size(), kFilesListed);
  FileLists lists;
  for (std::size_t i = 0; i < listed; ++i)
    (i < shown ? lists.shown : lists.folded).push_back(file_item(*files[i], result.plugin));
  lists.folded_count = files.size() - shown;
  lists.unlisted = files.size() - std::max(listed, shown);
  return lists;
}

html::List cost_of(const ResultView& result) {
  html::List cost = {{{"text", base::format_duration(result.wall_time)}}};
  if (result.cpu_time.count() > 0) cost.push_back({{"text", "CPU " + base::format_duration(result.cpu_time)}});
  if (result.peak_memory_bytes > 0) cost.push_back({{"text", base::format_size(result.peak_memory_bytes) + " memory"}});
  std::uint64_t bytes = 0;
  for (const OutputFile& file : result.files)
    bytes += file.size;
  if (result.files.size() > 1)
    cost.push_back({{"text", base::format_size(bytes) + " in " + counted(result.files.size(), "file")}});
  return cost;
}

std::string_view title_of(const ResultView& result) { return result.title.empty() ? result.plugin : result.title; }

Html render_result(const ResultView& result) {
  auto files = files_of(result);
  const bool logged = !result.log.empty(), has_stderr = !result.stderr_path.empty();
  return fill(embedded::result_html, {{"hook", result.plugin + "/" + result.hook},
                                      {"title", title_of(result)},
                                      {"status", html::status_badge(result.status)},
                                      {"output", result.output},
                                      {"error", result.error},
                                      {"files", std::move(files.shown)},
                                      {"folded", std::move(files.folded)},
                                      {"folded_count", grouped(files.folded_count)},
                                      {"unlisted", files.unlisted > 0 ? grouped(files.unlisted) : ""},
                                      {"manifest", kManifestName},
                                      {"cost", cost_of(result)},
                                      {"log", result.log},
                                      {"stderr", has_stderr ? href_of_path(result.stderr_path) : ""},
                                      {"only_stderr", !logged && has_stderr && result.status == "failed"}});
}

// Returns true for hooks without viewable files: they get one line each, with the reason.
bool is_quiet(const ResultView& result) {
  return result.files.empty() && (result.status == "skipped" || result.status == "noresults");
}

Html render_quiet(const ResultView& result, std::string_view silence) {
  const std::string& reason = !result.output.empty() ? result.output : result.error;
  return fill(embedded::quiet_result_html, {{"hook", result.plugin + "/" + result.hook},
                                            {"title", title_of(result)},
                                            {"reason", reason.empty() ? silence : std::string_view(reason)}});
}

// The results by what became of them, and how many hooks that are.
struct Group {
  Html items;
  std::size_t count{0};
};
struct Groups {
  Group kept, failed, silent, skipped;
};

Groups groups_of(const SnapshotView& view) {
  Groups groups;
  for (const ResultView& result : view.results) {
    if (result.status == "failed") {
      groups.failed.items += render_result(result);
      ++groups.failed.count;
    } else if (!is_quiet(result)) {
      groups.kept.items += render_result(result);
      if (result.status == "succeeded") ++groups.kept.count;
    } else if (result.status == "skipped") {
      groups.skipped.items += render_quiet(result, "No reason given");
      ++groups.skipped.count;
    } else {
      groups.silent.items += render_quiet(result, "Found nothing on this page");
      ++groups.silent.count;
    }
  }
  return groups;
}

Html lede_of(const Groups& groups) {
  const auto some = [](std::size_t count) { return count > 0 ? grouped(count) : std::string(); };
  return fill(embedded::lede_html, {{"kept", counted(groups.kept.count, "hook")},
                                    {"failed", some(groups.failed.count)},
                                    {"silent", some(groups.silent.count)},
                                    {"skipped", some(groups.skipped.count)}});
}

html::List blocks_of(const Groups& groups, const Html& lede) {
  html::List blocks;
  const auto add = [&](const char* id, const char* heading, html::Value about, const char* style, const Group& group) {
    if (!group.items.empty())
      blocks.push_back(
          {{"id", id}, {"heading", heading}, {"lede", std::move(about)}, {"style", style}, {"items", group.items}});
  };
  add("kept", "Archived", lede, "results", groups.kept);
  add("failed", "Failed", counted(groups.failed.count, "hook") + " ended with an error.", "results", groups.failed);
  add("nothing", "Found nothing", counted(groups.silent.count, "hook") + " ran and had nothing to keep.", "quiet",
      groups.silent);
  add("skipped", "Skipped", counted(groups.skipped.count, "hook") + " had no part in this page.", "quiet",
      groups.skipped);
  return blocks;
}

html::List links_of(const SnapshotView& view) {
  html::List links;
  for (const auto& url : view.discovered)
    if (links.size() < kLinksListed) links.push_back({{"link", html::outside_link(url, url)}});
  return links;
}

} // namespace

std::string render_snapshot_html(const SnapshotView& view) {
  const OutputFile* favicon = main_file(view, "favicon", kIcons);
  const std::string icon = favicon == nullptr ? "" : href_of_path(favicon->path);
  const auto preview = preview_of(view);
  const auto groups = groups_of(view);
  const auto lede = lede_of(groups);
  const auto found = view.discovered.size();
  const Html body =
      fill(embedded::snapshot_html, {{"favicon", icon},
                                     {"outcome", html::status_badge(view.outcome)},
                                     {"headline", view.title.empty() ? html::without_scheme(view.url) : view.title},
                                     {"url", html::outside_link(view.url, view.url)},
                                     {"ways", ways(view)},
                                     {"facts", facts_of(view)},
                                     {"two_columns", preview.beside},
                                     {"preview", preview.html},
                                     {"kept", groups.kept.items},
                                     {"ran", !view.results.empty()},
                                     {"lede", lede},
                                     {"blocks", blocks_of(groups, lede)},
                                     {"links", links_of(view)},
                                     {"links_counted", counted(found, "link")},
                                     {"more_links", found > kLinksListed ? grouped(found - kLinksListed) : ""},
                                     {"manifest", kManifestName},
                                     {"id", view.id},
                                     {"crawl", view.crawl_id},
                                     {"fence", view.fence}});
  return page_frame(view.title.empty() ? view.url : view.title, icon, body);
}

} // namespace holdfast::archive
