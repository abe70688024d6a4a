#include "lib/wacz/writer.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/json.hpp"
#include "lib/warc/gzip.hpp"

#include <unistd.h>

#include <cerrno>

namespace holdfast::wacz {

namespace {

constexpr std::size_t kLinesOfBlock = 3000; // of the index, each compressed alone

} // namespace

Writer::Writer(ZipWriter& zip, About about)
    : zip_(zip), about_(std::move(about)), pages_(temporary_file()), resources_(temporary_file()) {
  const auto head = base::json_text(nlohmann::ordered_json{
                        {"format", "json-pages-1.0"}, {"id", "pages"}, {"title", "All Pages"}, {"hasText", true}}) +
                    "\n";
  write_all(pages_.get(), head);
  pages_size_ = head.size();
}

std::string Writer::add_file(const std::string& path, int file, std::uint64_t size) {
  auto sha256 = zip_.add(path, file, size);
  add_resource(path, size, sha256);
  return sha256;
}

std::string Writer::add_text(const std::string& path, const std::string& text) {
  auto sha256 = zip_.add(path, text);
  add_resource(path, text.size(), sha256);
  return sha256;
}

void Writer::add_resource(const std::string& path, std::uint64_t size, const std::string& sha256) {
  const auto entry =
      (resources_size_ == 0 ? "\n    " : ",\n    ") +
      base::json_text(nlohmann::ordered_json{
          {"name", path.substr(path.find('/') + 1)}, {"path", path}, {"hash", "sha256:" + sha256}, {"bytes", size}});
  write_all(resources_.get(), entry);
  resources_size_ += entry.size();
}

void Writer::add_warc(const std::string& name, int file, std::uint64_t size) {
  add_file("archive/" + name, file, size);
}

void Writer::add_capture(const warc::Capture& capture) { lines_.add(warc::cdxj_line(capture)); }

void Writer::add_page(const WrittenPage& page) {
  nlohmann::ordered_json object = {{"id", page.id}, {"url", page.url}, {"ts", page.date}};
  if (!page.title.empty()) object["title"] = page.title;
  if (!page.text.empty()) object["text"] = page.text;
  const auto line = base::json_text(object) + "\n";
  write_all(pages_.get(), line);
  pages_size_ += line.size();
}

// Writes blocks of lines, each a gzip member, and a second index with the offset of each.
void Writer::add_index() {
  const auto index = temporary_file();
  std::uint64_t offset = 0;
  std::string second =
      "!meta 0 " + base::json_text(nlohmann::ordered_json{{"format", "cdxj-gzip-1.0"}, {"filename", "index.cdx.gz"}}) +
      "\n";
  std::string block, first;
  std::size_t lines = 0;
  const auto flush = [&] {
    if (lines == 0) return;
    const auto packed = warc::gzip(block);
    write_all(index.get(), packed);
    second += first + " " +
              base::json_text(nlohmann::ordered_json{{"offset", offset},
                                                     {"length", packed.size()},
                                                     {"digest", "sha256:" + base::sha256_hex(packed)},
                                                     {"filename", "index.cdx.gz"}}) +
              "\n";
    offset += packed.size();
    block.clear();
    lines = 0;
  };
  lines_.each([&](const std::string& line) {
    if (lines == 0) first = line.substr(0, line.find(" {"));
    block += line + "\n";
    if (++lines == kLinesOfBlock) flush();
  });
  flush();
  add_file("indexes/index.cdx.gz", index.get(), offset);
  add_text("indexes/index.idx", second);
}

void Writer::finish() {
  add_file("pages/pages.jsonl", pages_.get(), pages_size_);
  add_index();
  const auto description = base::json_text(nlohmann::ordered_json{{"profile", "data-package"},
                                                                  {"wacz_version", "1.1.1"},
                                                                  {"title", about_.title},
                                                                  {"created", about_.created},
                                                                  {"software", about_.software}});
  const auto head = description.substr(0, description.size() - 1) + ",\n  \"resources\": [";
  const std::string tail = "\n  ]\n}\n";
  const auto package = temporary_file();
  write_all(package.get(), head);
  if (base::each_piece(resources_.get(), 0, resources_size_,
                       [&](std::string_view piece) { write_all(package.get(), piece); }) < 0)
    throw base::Error(base::ErrorClass::input_output, "cannot read the list of resources: " + base::errno_text(errno));
  write_all(package.get(), tail);
  const auto sha256 = add_file("datapackage.json", package.get(), head.size() + resources_size_ + tail.size());
  add_text("datapackage-digest.json",
           nlohmann::ordered_json{{"path", "datapackage.json"}, {"hash", "sha256:" + sha256}}.dump(2) + "\n");
}

} // namespace holdfast::wacz
