#include "lib/archive/page_text.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/no_links.hpp"
#include "lib/base/text/utf8.hpp"

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

} // namespace holdfast::archive
