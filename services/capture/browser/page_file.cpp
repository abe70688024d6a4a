#include "services/capture/browser/page_file.hpp"

#include <sys/stat.h>

#include <cctype>

namespace holdfast::capture {

namespace {

constexpr const char* kFiles = "file"; // a directory: the name of a site's file must not be one of ours

// The last part of a URL's path, without characters that mean something to a shell or a file system.
std::string file_name(const std::string& url) {
  constexpr std::size_t kLongest = 100; // its end tells the kind
  const auto path = url.substr(0, url.find_first_of("?#"));
  auto name = path.substr(path.rfind('/') + 1);
  if (name.size() > kLongest) name.erase(0, name.size() - kLongest);
  name.erase(0, name.find_first_not_of("-."));
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 &&
        std::string_view("%-._~").find(letter) == std::string_view::npos)
      letter = '_';
  return name.empty() ? "file" : name;
}

} // namespace

std::string not_a_page(const std::string& content_type, const std::string& disposition) {
  const auto type = media_type(content_type);
  if (lower_case(disposition).starts_with("attachment")) return kDownload;
  const bool shown = type.empty() || type.starts_with("text/") || type == "application/xhtml+xml" ||
                     type == "application/xml" || type == "application/json" ||
                     (type.ends_with("+xml") && type != "image/svg+xml");
  return shown ? "" : "not a page for a browser: " + type;
}

std::string keep_file(const Job& job, const std::string& url, const warc::Spool& body, std::set<std::string>& names) {
  const auto directory = std::string(kFiles) + "/", file = file_name(url);
  auto name = directory + file;
  for (int count = 2; !names.insert(name).second; ++count)
    name = directory + std::to_string(count) + "-" + file;
  ::mkdir(kFiles, 0777); // if it fails, the file cannot be written either
  job.write_pieces(name, [&](const auto& take) { body.read(take); });
  return name;
}

} // namespace holdfast::capture
