#include "lib/archive/redact_attempt.hpp"

#include "lib/archive/captures.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/html.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <set>
#include <stdexcept>

namespace holdfast::archive {

namespace {

constexpr std::size_t kLargestPage = 64u << 20;

warc::FoundSecrets copy_without(const warc::Redactor& redactor, int from, int to, const std::string& full) {
  warc::Redactor::Stream stream(redactor);
  const auto put = [&](std::string_view bytes) {
    if (!base::write_all(to, bytes)) throw_errno(errno, "write", full);
  };
  std::string piece(1u << 18, '\0');
  for (std::uint64_t at = 0;;) {
    const auto got = base::read_at(from, piece.data(), piece.size(), at);
    if (got < 0) throw_errno(errno, "read", full);
    stream.add(std::string_view(piece).substr(0, static_cast<std::size_t>(got)), put, got == 0);
    if (got == 0) return stream.found();
    at += static_cast<std::uint64_t>(got);
  }
}

// Returns the text that a page shows: not scripts, and not hidden fields.
std::string shown_text(std::string_view html) {
  std::string text;
  bool raw = false;
  formats::scan_html(html, [&](const formats::Token& token) {
    using Kind = formats::Token::Kind;
    if (token.kind == Kind::text && !raw) text += token.text;
    if (token.kind != Kind::text)
      raw = token.kind == Kind::start && (token.text == "script" || token.text == "style" || token.text == "title");
    const auto& type = token.attribute("type");
    if (token.kind == Kind::start && token.text == "input" && type != "hidden" && type != "password")
      text += " " + token.attribute("value") + " " + token.attribute("placeholder") + " ";
    if (token.kind == Kind::start && token.text == "iframe") text += shown_text(token.attribute("srcdoc"));
    return true;
  });
  return text;
}

void redact_link(const TreeEntry& entry, const std::string& full, const warc::Redactor& redactor) {
  auto target = read_link(entry.directory, entry.name).value_or("");
  if (!redactor.apply(target).any) return;
  if (::unlinkat(entry.directory, entry.name.c_str(), 0) != 0 ||
      ::symlinkat(target.c_str(), entry.directory, entry.name.c_str()) != 0)
    throw_errno(errno, "replace", full);
}

// Renames files with secrets in their names: wget's files, for example, have the names of URLs. The contents of a
// directory come before it.
void redact_names(int top, const std::string& where, const std::set<std::string, std::greater<>>& paths,
                  const warc::Redactor& redactor) {
  for (const auto& path : paths) {
    auto changed = path;
    const auto name = path.rfind('/') + 1;
    if (!redactor.apply(changed).any || path.substr(name) == changed.substr(name)) continue;
    const auto to = path.substr(0, name) + changed.substr(name);
    auto free = to;
    for (int number = 2; ::renameat2(top, path.c_str(), top, free.c_str(), RENAME_NOREPLACE) != 0; ++number) {
      if (errno != EEXIST) throw_errno(errno, "rename", where + "/" + path);
      free = to + "." + std::to_string(number);
    }
  }
}

class AttemptRedaction {
public:
  AttemptRedaction(const std::filesystem::path& attempt, SnapshotView& view, warc::Redactor& redactor)
      : attempt_(attempt), view_(view), redactor_(redactor) {}

  // WARC files show which secrets there are; the other files show whether the page's text has one.
  void each(const TreeEntry& entry, int round) {
    const auto full = (attempt_ / entry.path).string();
    const bool warc = is_warc(entry.name);
    if (entry.type == S_IFLNK) {
      if (round == 1) redact_link(entry, full, redactor_);
      return;
    }
    struct stat status {};
    const Fd file = open_file_at(entry.directory, entry.name, status);
    if (!file) return;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (round == 0 && warc) warc::learn_secrets(file.get(), size, redactor_);
    if (round == 1 && !warc) rewrite(entry, full, [&](int to) { return redact_file(entry, file.get(), to, full); });
    if (round == 2 && warc) rewrite(entry, full, [&](int to) { return redact_warc(file.get(), size, to); });
    if (round == 3 && !warc && (shown_ || (!text_ && bodies_)) && shows_page(file.get())) leave_out(entry);
  }
  static constexpr int kRounds = 4;

  std::vector<std::string> left_out;

private:
  enum class Change { none, replace, leave_out };

  Change redact_file(const TreeEntry& entry, int from, int to, const std::string& full) {
    const auto found = copy_without(redactor_, from, to, full);
    const bool html = entry.name.ends_with(".html") || entry.name.ends_with(".htm"),
               text = entry.name.ends_with(".txt");
    text_ = text_ || html || text;
    if (found.any && html && !shown_) {
      auto shown = shown_text(read_rest(from, full, kLargestPage));
      shown_ = redactor_.apply(shown).any;
    }
    shown_ = shown_ || (found.any && text);
    return found.unsure ? Change::leave_out : found.any ? Change::replace : Change::none;
  }

  Change redact_warc(int from, std::uint64_t size, int to) {
    auto redacted = warc::redact(from, size, to, redactor_, !shown_);
    bodies_ = bodies_ || redacted.bodies;
    left_out.insert(left_out.end(), redacted.left_out.begin(), redacted.left_out.end());
    return Change::replace;
  }

  template <typename Write>
  void rewrite(const TreeEntry& entry, const std::string& full, Write&& write) {
    const std::string made = ".redacted";
    ::unlinkat(entry.directory, made.c_str(), 0);
    const Fd target(::openat(entry.directory, made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!target) throw_errno(errno, "create a file beside", full);
    const auto change = write(target.get());
    if (change == Change::replace) {
      if (::renameat(entry.directory, made.c_str(), entry.directory, entry.name.c_str()) != 0)
        throw_errno(errno, "replace", full);
      return;
    }
    ::unlinkat(entry.directory, made.c_str(), 0);
    if (change == Change::leave_out) leave_out(entry);
  }

  static bool shows_page(int file) {
    std::string head(formats::kSniffed, '\0');
    const auto got = base::read_at(file, head.data(), head.size(), 0);
    head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return head.starts_with("%PDF") || !formats::media_of_bytes(head).empty();
  }

  // Removes a file, also from the result of its hook.
  void leave_out(const TreeEntry& entry) {
    if (::unlinkat(entry.directory, entry.name.c_str(), 0) != 0)
      throw_errno(errno, "remove", (attempt_ / entry.path).string());
    left_out.push_back(entry.path);
    for (auto& result : view_.results)
      if (std::erase_if(result.files, [&](const auto& file) { return file.path == entry.path; }) > 0 &&
          result.files.empty()) {
        result.status = "skipped";
        result.output.clear();
        result.error = kLeftOut;
      }
  }

  const std::filesystem::path& attempt_;
  SnapshotView& view_;
  warc::Redactor& redactor_;
  bool text_{false}, shown_{false}; // there is a file with the page's text; it shows a secret
  bool bodies_{false};              // a record had one
};

} // namespace

std::vector<std::string> redact_attempt(const std::filesystem::path& attempt, SnapshotView& view,
                                        warc::Redactor& redactor, const std::atomic<bool>* cancelled) {
  const Fd top = open_own_directory(attempt);
  std::set<std::string, std::greater<>> paths; // of directories too
  AttemptRedaction redaction(attempt, view, redactor);
  for (int round = 0; round < AttemptRedaction::kRounds; ++round)
    walk_tree(top.get(), attempt, [&](const TreeEntry& entry) {
      if (cancelled != nullptr && *cancelled)
        throw base::Error(base::ErrorClass::temporary, "its page is not wanted any more");
      for (auto path = entry.path; !path.empty();
           path.resize(path.find_last_of('/') == path.npos ? 0 : path.rfind('/')))
        paths.insert(path);
      try {
        redaction.each(entry, round);
      } catch (const std::runtime_error& error) { // of lib/warc
        if (dynamic_cast<const base::Error*>(&error) != nullptr) throw;
        throw base::Error(base::ErrorClass::input_output,
                          printable((attempt / entry.path).string()) + ": " + error.what());
      }
    });
  redact_names(top.get(), attempt.string(), paths, redactor);
  for (auto& result : view.results) {
    for (auto* text : {&result.output, &result.error, &result.log, &result.stderr_path})
      redactor.apply(*text);
    for (auto& file : result.files)
      redactor.apply(file.path);
  }
  for (auto& what : redaction.left_out)
    redactor.apply(what);
  return std::move(redaction.left_out);
}

} // namespace holdfast::archive
