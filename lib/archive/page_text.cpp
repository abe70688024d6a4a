#include "lib/archive/page_text.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/no_links.hpp"
#include "lib/base/utf8.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

std::string read_some(int file, std::size_t limit) {
  struct stat about {};
  if (::fstat(file, &about) != 0) return "";
  std::string text(std::min(limit, static_cast<std::size_t>(about.st_size)), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return base::repair_utf8(text);
}

std::string first_text(int attempt, std::size_t limit) {
  for (const auto& [plugin, name] : kTextFiles) {
    const Fd directory = open_directory_at(attempt, plugin);
    if (!directory) continue;
    struct stat about {};
    const Fd file = open_file_at(directory.get(), name, about);
    if (!file) continue;
    if (auto text = read_some(file.get(), limit); !text.empty()) return text;
  }
  return "";
}

} // namespace

std::string page_text(const std::filesystem::path& attempt, std::size_t limit) {
  const Fd top = base::open_no_links(attempt, O_RDONLY | O_DIRECTORY);
  return top ? first_text(top.get(), limit) : "";
}

std::string page_text(const Root& root, const std::string& directory, std::size_t limit) {
  if (root.bucket() == nullptr) {
    const Fd top = open_below(root.path(), directory, O_RDONLY | O_DIRECTORY);
    return top ? first_text(top.get(), limit) : "";
  }
  for (const auto& [plugin, name] : kTextFiles) {
    const base::Fd file(root.fetch(directory + "/" + plugin + "/" + name));
    if (!file) continue;
    if (auto text = read_some(file.get(), limit); !text.empty()) return text;
  }
  return "";
}

} // namespace holdfast::archive
