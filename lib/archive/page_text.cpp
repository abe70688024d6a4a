#include "lib/archive/page_text.hpp"

#include "lib/archive/embedded.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <utility>

namespace holdfast::archive {

namespace {

// Plugin and file, the best first: the built-in plugin, then ArchiveBox's.
constexpr std::array<std::pair<const char*, const char*>, 6> kTextFiles = {{{"text", "content.txt"},
                                                                            {"readability", "content.txt"},
                                                                            {"trafilatura", "content.txt"},
                                                                            {"defuddle", "content.txt"},
                                                                            {"mercury", "content.txt"},
                                                                            {"htmltotext", "htmltotext.txt"}}};

std::string read_text(int file, const std::string& path, std::size_t limit) {
  return base::repair_utf8(read_rest(file, path, limit));
}

// `path`: of the attempt, for messages.
std::string first_text(int attempt, const std::filesystem::path& path, std::size_t limit) {
  for (const auto& [plugin, name] : kTextFiles) {
    const Fd directory = open_directory_at(attempt, plugin);
    if (!directory) continue;
    struct stat about {};
    const Fd file = open_file_at(directory.get(), name, about);
    if (!file) continue;
    if (auto text = read_text(file.get(), (path / plugin / name).native(), limit); !text.empty()) return text;
  }
  return "";
}

} // namespace

std::string page_text(const std::filesystem::path& attempt, std::size_t limit) {
  const Fd top = base::open_no_links(attempt, O_RDONLY | O_DIRECTORY);
  return top ? first_text(top.get(), attempt, limit) : "";
}

std::string page_text(const Root& root, const std::string& directory, std::size_t limit) {
  if (root.bucket() == nullptr) {
    const Fd top = open_below(root.path(), directory, O_RDONLY | O_DIRECTORY);
    return top ? first_text(top.get(), root.path() / directory, limit) : "";
  }
  for (const auto& [plugin, name] : kTextFiles) {
    const auto path = directory + "/" + plugin + "/" + name;
    const auto file = root.open_file(path);
    if (!file) continue;
    if (auto text = read_text(file.get(), path, limit); !text.empty()) return text;
  }
  return "";
}

std::string page_frame(std::string_view title, std::string_view icon, const html::Html& body) {
  auto style = html::page_style();
  style += html::Literal(embedded::page_css);
  return html::fill(
             embedded::page_html,
             {{"title", title}, {"icon", icon}, {"style", style}, {"sprite", html::icon_sprite()}, {"body", body}})
      .text();
}

void add_facts(html::Facts& list, const base::Facts& facts) {
  const auto number = [&](const char* name) { return base::fact_number(facts, name); };
  if (const auto status = number("http_status"); status > 0)
    list.add("Response", html::with_sub("HTTP " + std::to_string(status), base::fact_text(facts, "mime")));
  if (const auto change = base::fact_text(facts, "change"); !change.empty()) {
    const auto added = number("words_added"), removed = number("words_removed");
    const bool words = added > 0 || removed > 0;
    list.add(
        "Change",
        html::with_sub(change, words ? "+" + std::to_string(added) + " -" + std::to_string(removed) + " words" : ""));
  }
  if (const auto all = number("resources"); all > 0) {
    const auto missing = number("resources_missing");
    list.add("Resources",
             html::with_sub(std::to_string(all), missing == 0 ? "all recorded" : std::to_string(missing) + " missing"));
  }
  std::string hosts;
  if (const auto unrecorded = facts.find("unrecorded"); unrecorded != facts.end())
    if (const auto object = nlohmann::json::parse(unrecorded->second, nullptr, false); object.is_object())
      for (const auto& [host, bytes] : object.items())
        hosts += (hosts.empty() ? "" : ", ") + host;
  if (!hosts.empty()) list.add("In no record", hosts);
}

html::Html tag_list(const std::vector<std::string>& tags) {
  html::List list;
  for (const auto& tag : tags)
    list.push_back({{"tag", tag}});
  return list.empty() ? html::Html() : html::fill(embedded::tags_html, {{"tags", std::move(list)}});
}

} // namespace holdfast::archive
