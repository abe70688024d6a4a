#pragma once
// Takes saved pages that are uploaded to holdfast serve.

#include "services/cli/context/context.hpp"
#include "services/serve/api/api.hpp"

#include <functional>

namespace holdfast::cli {

// Returns a function that imports one uploaded page. It may be called on any thread, while the context is not used.
std::function<serve::ImportedPage(const serve::UploadedPage&)> import_of_uploads(Context& context);

} // namespace holdfast::cli
