#pragma once
// The wget plugin: the page and all that it shows as files and as a WARC, by wget.

#include "services/capture/hook.hpp"

namespace holdfast::capture {

// wget/<host>/... the page and its requisites, links made local; wget/warc/page.warc.gz; wget/page.json.
Result run_wget(Job& job);

} // namespace holdfast::capture
