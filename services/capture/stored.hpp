#pragma once
// Bodies that sealed pages of this crawl hold already, as the worker lists them in the crawl's directory: the WARC of a
// page refers to them and does not repeat them. The list is only read here.

#include "lib/warc/writer.hpp"

#include <filesystem>

namespace holdfast::capture {

// Tells the writer every body in the list. No list: nothing.
void know_stored(const std::filesystem::path& list, warc::Writer& writer);

} // namespace holdfast::capture
