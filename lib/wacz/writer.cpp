#include "lib/wacz/writer.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/sha256.hpp"
#include "lib/warc/gzip.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::wacz {

namespace {

constexpr std::size_t kLinesOfBlock = 3000; // of the index, each compressed alone
constexpr std::size_t kCopied = 1u << 18;

} // namespace

Writer::Writer(int file, About about, std::time_t time)
    : zip_(file, time), about_(std::move(about)), pages_(temporary_file()) {
  const auto head = base::json_text(nlohmann::ordered_json{
                        {"format", "json-pages-1.0"}, {"id", "pages"}, {"title", "All Pages"}, {"hasText", true}}) +
                    "\n";
  write_all(pages_.get(), head);
  pages_size_ = head.size();
}

void Writer::add_file(const std::string& path, int file, std::uint64_t size) {
  zip_.begin(path, size);
  std::string piece(kCopied, '\0');
  for (std::uint64_t at = 0; at < size;) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), size - at));
    const auto got = ::pread(file, piece.data(), most, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw base::Error(base::ErrorClass::input_output, "cannot read " + path + ": " + base::errno_text(errno));
    if (got == 0) break; // end() says so
    zip_.write(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
    at += static_cast<std::uint64_t>(got);
  }
  resources_.push_back({path, zip_.end(), size});
}

void Writer::add_text(const std::string& path, const std::string& text) {
  zip_.begin(path, text.size());
  zip_.write(text);
  resources_.push_back({path, zip_.end(), text.size()});
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

// Blocks of lines, each a gzip member, and a second index that tells where each begins.
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

void Writer::close() {
  add_file("pages/pages.jsonl", pages_.get(), pages_size_);
  add_index();
  nlohmann::ordered_json package = {{"profile", "data-package"},
                                    {"wacz_version", "1.1.1"},
                                    {"title", about_.title},
                                    {"created", about_.created},
                                    {"software", about_.software}};
  auto& list = package["resources"] = nlohmann::ordered_json::array();
  for (const auto& resource : resources_)
    list.push_back({{"name", resource.path.substr(resource.path.find('/') + 1)},
                    {"path", resource.path},
                    {"hash", "sha256:" + resource.sha256},
                    {"bytes", resource.bytes}});
  const auto text = package.dump(2) + "\n";
  add_text("datapackage.json", text);
  add_text("datapackage-digest.json",
           nlohmann::ordered_json{{"path", "datapackage.json"}, {"hash", "sha256:" + base::sha256_hex(text)}}.dump(2) +
               "\n");
  zip_.close();
}

} // namespace holdfast::wacz
