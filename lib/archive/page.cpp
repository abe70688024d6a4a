#include "lib/archive/attempt.hpp"
#include "lib/archive/html.hpp"
#include "lib/archive/manifest.hpp"
#include "lib/base/duration.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

namespace holdfast::archive {

namespace {

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
constexpr std::array<std::string_view, 5> kIcons = {"image/x-icon", "image/vnd.microsoft.icon", "image/png",
                                                    "image/svg+xml", "image/gif"};

bool is_page(const OutputFile& file) { return has_type(file, kPages); }

std::string_view below_plugin(std::string_view path, std::string_view plugin) {
  if (path.size() > plugin.size() + 1 && path.starts_with(plugin) && path[plugin.size()] == '/')
    path.remove_prefix(plugin.size() + 1);
  return path;
}

// What a person most likely wants comes first: the file that the hook named as its output, then documents, then what
// lies near the top.
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

// The ways to look at the page, best first: one click each.
std::string render_ways(const SnapshotView& view) {
  struct Way {
    std::string_view plugin;
    Types types;
    std::string_view word;
  };
  static constexpr std::array<Way, 9> kWays = {{{"singlefile", kPages, "Single file"},
                                                {"readability", kPages, "Reader view"},
                                                {"screenshot", kImages, "Screenshot"},
                                                {"pdf", kPdf, "PDF"},
                                                {"wget", kPages, "Mirror"},
                                                {"dom", kPages, "DOM"},
                                                {"ytdlp", kVideo, "Video"},
                                                {"mercury", kPages, "Article"},
                                                {"defuddle", kPages, "Article"}}};
  std::string items;
  for (const Way& way : kWays) {
    if (const OutputFile* file = main_file(view, way.plugin, way.types))
      items += "<li><a href=\"" + href_of_path(file->path) + "\" rel=\"noopener noreferrer\">" + std::string(way.word) +
               "</a></li>";
  }
  return items.empty() ? items
                       : "<nav aria-label=\"Ways to open the page\"><ul class=\"ways\">" + items + "</ul></nav>\n";
}

std::string show_frame(const OutputFile& file, std::string_view title) {
  // An empty sandbox: no scripts, no forms, no navigation of this page, an origin of its own.
  return "<iframe sandbox=\"\" loading=\"lazy\" referrerpolicy=\"no-referrer\" title=\"" + html_escape(title) +
         "\" src=\"" + href_of_path(file.path) + "\"></iframe>";
}

// The big picture of the page, or nothing if no hook made one.
std::string render_preview(const SnapshotView& view) {
  if (const OutputFile* image = main_file(view, "screenshot", kImages)) {
    const std::string href = href_of_path(image->path);
    return "<section class=\"look\" aria-label=\"Screenshot\"><figure class=\"shot\"><a href=\"" + href +
           "\"><img src=\"" + href +
           "\" alt=\"The page as it looked when it was captured\"></a><figcaption>Screenshot, " +
           html_escape(base::format_size(image->size)) + ". Open it for full size.</figcaption></figure></section>\n";
  }
  if (const OutputFile* page = main_file(view, "singlefile", kPages)) {
    return "<section class=\"look\" aria-label=\"Archived page\"><figure class=\"shot\">" +
           show_frame(*page, "Archived page") +
           "<figcaption>The archived page, with its scripts switched off. <a href=\"" + href_of_path(page->path) +
           "\">Open it on its own</a></figcaption></figure></section>\n";
  }
  for (const std::string_view plugin : {"dom", "wget"}) {
    const OutputFile* page = main_file(view, plugin, kPages);
    if (page == nullptr) continue;
    // Such a page may load images and styles from where it came from; opening this page must not call there unasked.
    return "<section class=\"look\" aria-label=\"Archived page\"><details><summary>Show the archived page "
           "here</summary>"
           "<p class=\"note\">Its scripts are switched off. Images and styles that were not archived may be fetched "
           "from the live "
           "site.</p><figure class=\"shot\">" +
           show_frame(*page, "Archived page") + "</figure></details></section>\n";
  }
  return {};
}

std::string fact(std::string_view name, const std::string& value, bool wide = false) {
  if (value.empty()) return {};
  return std::string(wide ? "<div class=\"wide\">" : "<div>") + "<dt>" + std::string(name) + "</dt><dd>" + value +
         "</dd></div>\n";
}

std::string tag_list(const std::vector<std::string>& tags) {
  if (tags.empty()) return {};
  std::string out = "<ul class=\"tags\">";
  for (const std::string& tag : tags)
    out += "<li>" + html_escape(tag) + "</li>";
  return out + "</ul>";
}

std::string render_header(const SnapshotView& view, const OutputFile* favicon) {
  std::string out = "<header class=\"mast\">\n<p class=\"kicker\">";
  if (favicon != nullptr) out += "<img class=\"favicon\" src=\"" + href_of_path(favicon->path) + "\" alt=\"\">";
  out += "<span>Archived page</span>" + status_badge(view.outcome) + "</p>\n";
  const std::string_view headline = view.title.empty() ? without_scheme(view.url) : std::string_view(view.title);
  out += "<h1 dir=\"auto\">" + html_escape(headline) + "</h1>\n";
  out +=
      "<p class=\"url\">" + outside_link(view.url, view.url) + "</p>\n" + render_ways(view) + "<dl class=\"facts\">\n";
  const std::string& captured = view.ended_at.empty() ? view.started_at : view.ended_at;
  out += fact("Captured", time_element(captured), true);
  if (view.files > 0)
    out += fact("Kept", html_escape(base::format_size(view.bytes)) + " <span class=\"sub\">in " +
                            counted(view.files, "file") + "</span>");
  const auto mime = view.mime.empty() ? "" : " <span class=\"sub\">" + html_escape(view.mime) + "</span>";
  if (view.http_status > 0) out += fact("Response", "HTTP " + std::to_string(view.http_status) + mime);
  out += fact("Depth", view.depth == 0 ? "0 <span class=\"sub\">a seed</span>" : std::to_string(view.depth));
  out += fact("Worker", html_escape(view.worker));
  out += fact("Tags", tag_list(view.tags), true);
  return out + "</dl>\n</header>\n";
}

std::string file_item(const OutputFile& file, const std::string& plugin) {
  const std::string_view label = below_plugin(file.path, plugin);
  return "<li><a href=\"" + href_of_path(file.path) + "\" rel=\"noopener noreferrer\">" + html_escape(label) +
         "</a><span class=\"size\">" + html_escape(base::format_size(file.size)) + "</span></li>";
}

std::string render_files(const ResultView& result) {
  if (result.files.empty()) return {};
  std::vector<const OutputFile*> files;
  files.reserve(result.files.size());
  for (const OutputFile& file : result.files)
    files.push_back(&file);
  std::stable_sort(files.begin(), files.end(),
                   [&](const OutputFile* a, const OutputFile* b) { return rank_of(*a, result) < rank_of(*b, result); });

  // A single one behind "and 1 more" would take the same room.
  const std::size_t shown = files.size() <= kFilesShown + 1 ? files.size() : kFilesShown;
  const std::size_t listed = std::min(files.size(), kFilesListed);
  std::string out = "<ul class=\"files\">";
  for (std::size_t i = 0; i < shown; ++i)
    out += file_item(*files[i], result.plugin);
  out += "</ul>";
  if (listed > shown) {
    out += "<details><summary>and " + grouped(files.size() - shown) + " more</summary><ul class=\"files\">";
    for (std::size_t i = shown; i < listed; ++i)
      out += file_item(*files[i], result.plugin);
    out += "</ul>";
    if (files.size() > listed) {
      out += "<p>" + grouped(files.size() - listed) + " more are in <a href=\"" + href_of_path(kManifestName) + "\">" +
             kManifestName + "</a>.</p>";
    }
    out += "</details>";
  }
  return out;
}

std::string render_cost(const ResultView& result) {
  std::string out = "<p class=\"cost\"><span>" + html_escape(base::format_duration(result.wall_time)) + "</span>";
  if (result.cpu_time.count() > 0)
    out += "<span>CPU " + html_escape(base::format_duration(result.cpu_time)) + "</span>";
  if (result.peak_memory_bytes > 0)
    out += "<span>" + html_escape(base::format_size(result.peak_memory_bytes)) + " memory</span>";
  std::uint64_t bytes = 0;
  for (const OutputFile& file : result.files)
    bytes += file.size;
  if (result.files.size() > 1)
    out += "<span>" + html_escape(base::format_size(bytes)) + " in " + counted(result.files.size(), "file") + "</span>";
  return out + "</p>";
}

std::string_view title_of(const ResultView& result) { return result.title.empty() ? result.plugin : result.title; }

std::string render_result(const ResultView& result, std::size_t number) {
  std::string out = "<li class=\"result\" id=\"result-" + std::to_string(number) +
                    "\">\n<div class=\"cap\"><h3 title=\"" + html_escape(result.plugin + "/" + result.hook) + "\">" +
                    html_escape(title_of(result)) + "</h3>" + status_badge(result.status) + "</div>\n";
  if (!result.output.empty()) out += "<p class=\"said\" dir=\"auto\">" + html_escape(result.output) + "</p>\n";
  if (!result.error.empty()) out += "<p class=\"said err\">" + html_escape(result.error) + "</p>\n";
  out += render_files(result) + render_cost(result);
  if (!result.log.empty()) {
    out += "<details><summary>Last lines of its error output</summary><pre tabindex=\"0\">" + html_escape(result.log) +
           "</pre>";
    if (!result.stderr_path.empty())
      out += "<p><a href=\"" + href_of_path(result.stderr_path) + "\">The whole log</a></p>";
    out += "</details>";
  } else if (!result.stderr_path.empty() && result.status == "failed") {
    out += "<p class=\"cost\"><a href=\"" + href_of_path(result.stderr_path) + "\">Its error output</a></p>";
  }
  return out + "\n</li>\n";
}

// Hooks that left nothing to look at: one line each, with the reason.
bool is_quiet(const ResultView& result) {
  return result.files.empty() && (result.status == "skipped" || result.status == "noresults");
}

std::string render_quiet(const ResultView& result, std::size_t number, std::string_view silence) {
  const std::string& reason = !result.output.empty() ? result.output : result.error;
  return "<li id=\"result-" + std::to_string(number) + "\"><b title=\"" +
         html_escape(result.plugin + "/" + result.hook) + "\">" + html_escape(title_of(result)) + "</b><span>" +
         (reason.empty() ? std::string(silence) : html_escape(reason)) + "</span></li>\n";
}

// One part of the page. `body` is what stands in the list; nothing at all if that is empty.
std::string block(std::string_view id, std::string_view heading, const std::string& lede, std::string_view list_class,
                  const std::string& body) {
  if (body.empty()) return {};
  return "<section class=\"block\" id=\"" + std::string(id) + "\">\n<h2>" + std::string(heading) +
         "</h2>\n<p class=\"lede\">" + lede + "</p>\n<ul class=\"" + std::string(list_class) + "\">\n" + body +
         "</ul>\n</section>\n";
}

std::string render_results(const SnapshotView& view) {
  std::string kept;
  std::string failed;
  std::string silent;
  std::string skipped;
  std::size_t kept_count = 0;
  std::size_t failed_count = 0;
  std::size_t silent_count = 0;
  std::size_t skipped_count = 0;
  for (std::size_t i = 0; i < view.results.size(); ++i) {
    const ResultView& result = view.results[i];
    if (result.status == "failed") {
      failed += render_result(result, i + 1);
      ++failed_count;
    } else if (!is_quiet(result)) {
      kept += render_result(result, i + 1);
      if (result.status == "succeeded") ++kept_count;
    } else if (result.status == "skipped") {
      skipped += render_quiet(result, i + 1, "No reason given");
      ++skipped_count;
    } else {
      silent += render_quiet(result, i + 1, "Nothing on this page for it");
      ++silent_count;
    }
  }

  std::string lede = counted(kept_count, "hook") + " succeeded";
  if (failed_count > 0) lede += ", <a href=\"#failed\">" + grouped(failed_count) + " failed</a>";
  if (silent_count > 0) lede += ", <a href=\"#nothing\">" + grouped(silent_count) + " found nothing</a>";
  if (skipped_count > 0) lede += ", <a href=\"#skipped\">" + grouped(skipped_count) + " skipped</a>";

  std::string out = block("kept", "What was kept", lede + ".", "results", kept);
  if (kept.empty()) {
    out += "<section class=\"block\" id=\"kept\">\n<h2>Nothing was kept</h2>\n<p class=\"lede\">" +
           (view.results.empty() ? std::string("No hook ran on this page.") : lede + ".") + "</p>\n</section>\n";
  }
  out += block("failed", "What failed", counted(failed_count, "hook") + " ended with an error.", "results", failed);
  out += block("nothing", "Found nothing", counted(silent_count, "hook") + " ran and had nothing to keep.", "quiet",
               silent);
  out += block("skipped", "Skipped", counted(skipped_count, "hook") + " had no part in this page.", "quiet", skipped);
  return out;
}

std::string render_discovered(const SnapshotView& view) {
  if (view.discovered.empty()) return {};
  const std::size_t listed = std::min(view.discovered.size(), kLinksListed);
  std::string out = "<section class=\"block\" id=\"links\">\n<h2>Links found on the page</h2>\n<details><summary>Show ";
  out += counted(view.discovered.size(), "link");
  out += "</summary>\n<ol class=\"links\">\n";
  for (std::size_t i = 0; i < listed; ++i)
    out += "<li>" + outside_link(view.discovered[i], view.discovered[i]) + "</li>\n";
  out += "</ol>";
  if (view.discovered.size() > listed) {
    out += "<p>" + grouped(view.discovered.size() - listed) +
           " more are in <a href=\"./index.jsonl\">index.jsonl</a>.</p>";
  }
  return out + "</details>\n</section>\n";
}

std::string render_footer(const SnapshotView& view) {
  std::string out = "<footer class=\"foot\">\n<p>To check that nothing has changed since, run <code>sha256sum -c ";
  out += kManifestName;
  out += "</code> in this directory. Every file and its digest is in <a href=\"";
  out += href_of_path(kManifestName);
  out += "\">";
  out += kManifestName;
  out += "</a>; the same results for programs are in <a href=\"./index.jsonl\">index.jsonl</a>.</p>\n<p>Snapshot <span "
         "class=\"mono\">";
  out += html_escape(view.id) + "</span>";
  if (!view.crawl_id.empty()) out += " of crawl <span class=\"mono\">" + html_escape(view.crawl_id) + "</span>";
  out += ", attempt " + std::to_string(view.fence) + ". Sealed by Holdfast.</p>\n</footer>\n";
  return out;
}

} // namespace

std::string render_snapshot_html(const SnapshotView& view) {
  const OutputFile* favicon = main_file(view, "favicon", kIcons);
  const std::string preview = render_preview(view);
  std::string out =
      page_head(view.title.empty() ? view.url : view.title, favicon == nullptr ? std::string_view{} : favicon->path);
  out += "<a class=\"skip\" href=\"#kept\">Skip to what was kept</a>\n<div class=\"page\">\n";
  out += render_header(view, favicon);
  const bool two_columns = preview.find("<details") == std::string::npos && !preview.empty();
  out += two_columns ? "<main class=\"spread two\">\n" : "<main class=\"spread\">\n";
  out += preview;
  out += "<div>\n" + render_results(view) + render_discovered(view) + "</div>\n</main>\n";
  out += render_footer(view) + "</div>\n" + page_foot();
  return out;
}

} // namespace holdfast::archive
