#pragma once
// Imports of web archives: WARC and WACZ files, and pages that a browser saved as one file. Main thread, but for
// import_archive().

#include "lib/base/file.hpp"
#include "services/cli/transfer/importer.hpp"
#include "services/serve/api/api.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

// Imports the pages of one archive. `name`: for messages. `url`: of a saved page that does not name it. Returns how
// many pages it holds. Throws Error(usage) or Error(refused) if it cannot be read. Any thread.
std::size_t import_archive(Importer& importer, base::Fd file, const std::string& name, const std::string& url);

// Imports several archives for a verb; one that cannot be read does not end it. Prints the summary; returns the exit
// code.
int import_archives(Context& context, const std::vector<std::string>& files, bool dry_run, const std::string& url = {});

// Returns a function that imports one page that was uploaded to holdfast serve. It may be called on any thread, while
// the context is not used.
std::function<serve::ImportedPage(const serve::UploadedPage&)> import_of_uploads(Context& context);

} // namespace holdfast::cli
