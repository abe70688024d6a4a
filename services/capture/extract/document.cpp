#include "services/capture/extract/document.hpp"

#include "lib/base/text/text.hpp"
#include "lib/formats/html.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <pugixml.hpp>
#include <string_view>

namespace holdfast::capture {

namespace {

constexpr std::size_t kLargestText = 16u << 20; // that a child writes

struct Kind {
  std::string_view type, ending, magic; // of its name, and of the file
  const char* program;
  const char* package;
  std::vector<std::string> arguments; // the file stands for "@"
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"application/pdf", ".pdf", "%PDF-", "pdftotext", "poppler-utils", {"-q", "-enc", "UTF-8", "@", "-"}},
      {"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
       ".docx",
       "PK",
       "bsdtar",
       "libarchive-tools",
       {"-xOf", "@", "word/document.xml", "word/footnotes*.xml", "word/endnotes*.xml"}},
      {"application/vnd.oasis.opendocument.text",
       ".odt",
       "PK",
       "bsdtar",
       "libarchive-tools",
       {"-xOf", "@", "content.xml"}},
      {"application/epub+zip",
       ".epub",
       "PK",
       "bsdtar",
       "libarchive-tools",
       {"-xOf", "@", "*.xhtml", "*.html", "*.htm"}}};
  return all;
}

volatile pid_t running = 0;

// Returns what a program prints, up to kLargestText. A pattern of bsdtar that matches nothing is an error of its own,
// so the exit status says little.
std::string output_of(const Kind& kind, const std::string& file) {
  std::vector<std::string> command{Job::program("", {kind.program}, kind.package)};
  for (const auto& argument : kind.arguments)
    command.push_back(argument == "@" ? file : argument);
  std::vector<char*> pointers;
  for (auto& word : command)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw failed(std::string("cannot make a pipe: ") + std::strerror(errno));
  const base::Fd output(ends[0]);
  base::Fd input(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) throw failed(std::string("cannot start ") + kind.program + ": " + std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, STDIN_FILENO);
    ::dup2(input.get(), STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  running = pid;
  on_stop = [] {
    if (running > 0) ::kill(running, SIGKILL);
  };
  input.reset();
  std::string text;
  std::array<char, 1u << 16> piece;
  for (ssize_t count = 0; text.size() <= kLargestText; text.append(piece.data(), static_cast<std::size_t>(count)))
    if ((count = ::read(output.get(), piece.data(), piece.size())) <= 0) break;
  if (text.size() > kLargestText) ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  running = 0;
  return text;
}

void add_block(std::vector<Block>& blocks, std::string tag, std::string text) {
  const auto words = base::trimmed(text);
  if (!words.empty()) blocks.push_back({std::move(tag), std::string(words), true, false, false, words.size(), 0});
}

// A PDF's paragraphs end at empty lines, its pages at form feeds.
std::vector<Block> paragraphs(std::string_view text) {
  std::vector<Block> blocks;
  std::string paragraph;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\n\f"), text.size());
    const auto line = base::trimmed(text.substr(0, end));
    if (line.empty()) add_block(blocks, "p", std::exchange(paragraph, ""));
    if (!line.empty()) paragraph.append(paragraph.empty() ? "" : " ").append(line);
    if (end < text.size() && text[end] == '\f') add_block(blocks, "p", std::exchange(paragraph, ""));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  add_block(blocks, "p", paragraph);
  return blocks;
}

// Paragraphs of WordprocessingML and of OpenDocument: <w:p>, <text:p>, <text:h>, with tabs, breaks and blanks in them.
struct Paragraphs : pugi::xml_tree_walker {
  bool for_each(pugi::xml_node& node) override {
    const std::string_view name = node.name(), local = name.substr(name.find(':') + 1);
    if (name == "w:p" || name == "text:p" || name == "text:h") {
      add_block(blocks, heading ? "h2" : "p", std::exchange(text, ""));
      heading = name == "text:h";
    } else if (name == "w:pStyle") {
      heading = std::string_view(node.attribute("w:val").value()).starts_with("Heading");
    } else if (local == "tab" || local == "br" || local == "line-break" || name == "text:s") {
      text += ' ';
    } else if (node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata) {
      const std::string_view parent = node.parent().name();
      if (parent != "w:instrText" && parent != "w:delText") text += node.value();
    }
    return true;
  }
  bool end(pugi::xml_node&) override {
    add_block(blocks, heading ? "h2" : "p", std::exchange(text, ""));
    return true;
  }
  std::vector<Block> blocks;
  std::string text;
  bool heading{false};
};

std::vector<Block> blocks_of_xml(const std::string& xml) {
  constexpr std::string_view kStart = "<?xml";
  Paragraphs found;
  for (std::size_t begin = xml.find(kStart); begin != xml.npos;) { // each file after the other
    const auto end = std::min(xml.find(kStart, begin + kStart.size()), xml.size());
    pugi::xml_document document;
    document.load_buffer(xml.data() + begin, end - begin, pugi::parse_default | pugi::parse_ws_pcdata);
    document.traverse(found);
    begin = end == xml.size() ? xml.npos : end;
  }
  return std::move(found.blocks);
}

// The titles, descriptions and texts of a drawing; its own title is a heading.
std::vector<Block> drawing_blocks(const Page& page) {
  std::vector<Block> blocks;
  std::string text, inside;
  formats::scan_html(formats::xml_as_html(page.text()), [&](const formats::Token& token) {
    using formats::Token;
    const bool worded = token.text == "title" || token.text == "desc" || token.text == "text";
    if (token.kind == Token::Kind::text && !inside.empty()) text += token.text;
    if (token.kind == Token::Kind::start && inside.empty() && worded && !token.self_closed) inside = token.text;
    if (token.kind == Token::Kind::end && token.text == inside) {
      add_block(blocks, inside == "title" && blocks.empty() ? "h1" : "p", clean(std::exchange(text, "")));
      inside.clear();
    }
    return true;
  });
  return blocks;
}

} // namespace

std::string drawing_title(const Page& page) {
  constexpr std::size_t kLongest = 1000;
  const auto blocks = drawing_blocks(page);
  return blocks.empty() || blocks.front().tag != "h1" ? "" : one_line(blocks.front().text(), kLongest);
}

std::optional<DocumentText> document_text(const Page& page) {
  if (page.is_drawing()) return DocumentText{drawing_blocks(page), false};
  if (page.file.empty()) return std::nullopt;
  const auto declared = media_type(page.content_type);
  for (const auto& kind : kinds()) {
    if (!page.bytes.starts_with(kind.magic) || (kind.type != declared && !page.file.ends_with(kind.ending))) continue;
    const auto text = clean(output_of(kind, page.file));
    DocumentText found{kind.ending == ".pdf"    ? paragraphs(text)
                       : kind.ending == ".epub" ? readable_blocks(text)
                                                : blocks_of_xml(text),
                       text.size() > kLargestText};
    if (found.blocks.empty()) throw no_results(std::string(kind.program) + " found no text in it");
    return found;
  }
  return std::nullopt;
}

} // namespace holdfast::capture
