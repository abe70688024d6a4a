#pragma once
// The hooks that need no program: about the page's headers and icon, and what is read out of its copies.

#include "services/capture/hook.hpp"

namespace holdfast::capture {

Result save_headers(Job& job);  // headers/headers.json
Result save_favicon(Job& job);  // favicon/favicon.ico, .png, ...
Result save_title(Job& job);    // title/title.txt
Result save_text(Job& job);     // text/content.txt, text/content.html
Result save_outlinks(Job& job); // outlinks/urls.jsonl, which the worker reads
Result save_hashes(Job& job);   // hashes/hashes.json

} // namespace holdfast::capture
