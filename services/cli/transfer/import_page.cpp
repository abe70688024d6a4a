// holdfast import page, and uploads to holdfast serve: pages that a browser saved as one file.

#include "lib/base/error.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/saved_page.hpp"
#include "lib/wacz/writer.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/transfer/import_warc.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

struct PageOptions {
  std::vector<std::string> paths;
  std::string url;
  bool dry_run{false};
};

bool is_saved_page(const fs::path& path) {
  return formats::saved_kind(base::read_file(path, formats::kSavedHead)) != formats::SavedKind::none;
}

// The files among the paths, and the saved pages below the directories among them, in order of their names.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    const auto before = static_cast<std::ptrdiff_t>(files.size());
    for (const auto& entry : fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied))
      if (entry.is_regular_file() && !entry.is_symlink() && is_saved_page(entry.path()))
        files.push_back(entry.path().native());
    if (static_cast<std::ptrdiff_t>(files.size()) == before)
      throw base::Error(base::ErrorClass::usage, path + " holds no saved page: MHTML, or HTML of SingleFile",
                        "name the files");
    std::sort(files.begin() + before, files.end());
  }
  return files;
}

} // namespace

Action import_page_verb(CLI::App& command) {
  const auto options = std::make_shared<PageOptions>();
  command.add_option("paths", options->paths, "Files, and directories that hold them")
      ->required()
      ->check(CLI::ExistingPath);
  command.add_option("--url", options->url, "URL of the page, for a file of HTML that does not name it")
      ->type_name("URL");
  command.add_flag("--dry-run", options->dry_run, "Only count, and name what cannot be read");
  return [options](Context& context) {
    const auto files = files_of(options->paths);
    if (!options->url.empty()) {
      base::parse_url(options->url);
      if (files.size() != 1)
        throw base::Error(base::ErrorClass::usage,
                          "--url names the page of one file, and there are " + std::to_string(files.size()));
    }
    return import_archives(context, files, options->dry_run, options->url);
  };
}

std::function<serve::ImportedPage(const serve::UploadedPage&)> import_of_uploads(Context& context) {
  auto to = import_target(context, true);
  return [to](const serve::UploadedPage& upload) {
    serve::ImportedPage answer;
    auto target = to;
    target.dry_run = false;
    target.shows_progress = false;
    target.connection = [&upload]() -> pg::Connection& { return upload.connection; };
    target.by = upload.by;
    target.problem = [&answer](const std::string&, const std::string& problem) { answer.problems.push_back(problem); };
    auto file = wacz::temporary_file();
    wacz::write_all(file.get(), upload.bytes);
    Importer importer(std::move(target));
    import_archive(importer, std::move(file), "the file", upload.url);
    answer.added = importer.counts().imported > 0;
    answer.known = importer.counts().known > 0;
    answer.snapshot = importer.last().id;
    answer.crawl = importer.last().crawl_id;
    answer.url = importer.last().url;
    return answer;
  };
}

} // namespace holdfast::cli
