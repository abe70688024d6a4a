#pragma once
// The words of drawings (SVG), and of documents that a browser does not show: PDF by pdftotext (poppler-utils), docx,
// odt and epub by bsdtar (libarchive-tools). Each runs as a child, because a document is hostile input and few pages
// are documents.

#include "services/capture/browser/page.hpp"
#include "services/capture/extract/readable.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::capture {

struct DocumentText {
  std::vector<Block> blocks;
  bool cut{false}; // it has more words than are read
};

// The title of a drawing; empty: none.
std::string drawing_title(const Page& page);
// The words of a page that is a document of this kind; nullopt: it is not. Throws Ending if a program is missing
// (skipped) or cannot read it.
std::optional<DocumentText> document_text(const Page& page);

} // namespace holdfast::capture
