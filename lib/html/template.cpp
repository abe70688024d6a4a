#include "lib/html/template.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"

namespace holdfast::html {

namespace {

[[noreturn]] void fail(const std::string& what, std::string_view name) {
  throw base::Error(base::ErrorClass::bug, "HTML template: " + what + " \"" + std::string(name) + "\"");
}

std::string escaped_text(std::string_view text) {
  constexpr std::string_view kMarks = "&<>\"'", kNames[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const auto [code, length] = base::first_character(text);
    const auto mark = kMarks.find(text[0]);
    const bool shown = code == U'\t' || code == U'\n' || code == U'\r' || !base::is_unprintable(code);
    if (mark != std::string_view::npos)
      out += kNames[mark];
    else
      out += shown && code != U'\uFFFD' ? text.substr(0, length) : base::kReplacement;
    text.remove_prefix(length);
  }
  return out;
}

struct Tag {
  std::size_t begin{std::string_view::npos}, end{0};
  char kind{' '}; // '#', '?', '^', '/', or ' ' for a value
  std::string_view name;
  explicit operator bool() const noexcept { return begin != std::string_view::npos; }
  bool opens() const noexcept { return kind == '#' || kind == '?' || kind == '^'; }
};

Tag next_tag(std::string_view text, std::size_t from) {
  Tag tag;
  tag.begin = text.find("{{", from);
  if (!tag) return tag;
  const auto close = text.find("}}", tag.begin);
  if (close == std::string_view::npos) fail("no end of", text.substr(tag.begin, 20));
  tag.end = close + 2;
  tag.name = text.substr(tag.begin + 2, close - tag.begin - 2);
  if (!tag.name.empty() && std::string_view("#?^/").find(tag.name.front()) != std::string_view::npos) {
    tag.kind = tag.name.front();
    tag.name.remove_prefix(1);
  }
  return tag;
}

// A tag alone on its line takes the line.
void take_line(std::string_view text, Tag& tag) {
  const auto line = text.substr(0, tag.begin).find_last_not_of(' ');
  const bool first = line == std::string_view::npos || text[line] == '\n';
  if (!first || tag.end >= text.size() || text[tag.end] != '\n') return;
  tag.begin = line == std::string_view::npos ? 0 : line + 1;
  ++tag.end;
}

} // namespace

Value::Value(Html html) : value_(std::move(html)) {}
Value::Value(std::string text) : value_(std::move(text)) {}
Value::Value(std::string_view text) : value_(std::string(text)) {}
Value::Value(const char* text) : value_(std::string(text)) {}
Value::Value(List list) : value_(std::move(list)) {}

Html escaped(std::string_view text) { return Html(escaped_text(text)); }

bool Value::empty() const noexcept {
  if (const auto* text = std::get_if<std::string>(&value_)) return text->empty();
  if (const auto* html = std::get_if<Html>(&value_)) return html->empty();
  if (const auto* list = std::get_if<List>(&value_)) return list->empty();
  return !std::get<bool>(value_);
}

class Filler {
public:
  struct Scope {
    const Fields& fields;
    const Scope* outer;
  };

  void run(std::string_view text, const Scope& scope) {
    std::size_t at = 0;
    for (auto tag = next_tag(text, at); tag; tag = next_tag(text, at)) {
      if (tag.opens()) take_line(text, tag);
      out_ += text.substr(at, tag.begin - at);
      at = tag.kind == ' ' ? value(tag, scope) : section(text, tag, scope);
    }
    out_ += text.substr(at);
  }

  std::string take() { return std::move(out_); }

private:
  static const Value& find(std::string_view name, const Scope* scope) {
    for (; scope != nullptr; scope = scope->outer)
      for (const auto& field : scope->fields)
        if (field.name == name) return field.value;
    fail("no value for", name);
  }

  std::size_t value(const Tag& tag, const Scope& scope) {
    const auto& value = find(tag.name, &scope).value_;
    if (const auto* text = std::get_if<std::string>(&value))
      out_ += escaped_text(*text);
    else if (const auto* html = std::get_if<Html>(&value))
      out_ += html->text();
    else
      fail("neither text nor HTML:", tag.name);
    return tag.end;
  }

  // Returns where the text goes on after the section.
  std::size_t section(std::string_view text, const Tag& open, const Scope& scope) {
    if (!open.opens()) fail("nothing to close for", open.name);
    auto close = next_tag(text, open.end);
    for (int depth = 0; close; close = next_tag(text, close.end)) {
      if (close.name != open.name || close.kind == ' ') continue;
      if (close.opens()) ++depth;
      if (close.kind == '/' && depth-- == 0) break;
    }
    if (!close) fail("no end of section", open.name);
    take_line(text, close);
    const auto body = text.substr(open.end, close.begin - open.end);
    const auto& value = find(open.name, &scope);
    if (open.kind == '#') {
      const auto* list = std::get_if<List>(&value.value_);
      if (list == nullptr) fail("not a list:", open.name);
      for (const auto& item : *list)
        run(body, {item, &scope});
    } else if (value.empty() == (open.kind == '^')) {
      run(body, scope);
    }
    return close.end;
  }

  std::string out_;
};

Html fill(Literal text, const Fields& fields) {
  Filler filler;
  filler.run(text.text(), {fields, nullptr});
  return Html(filler.take());
}

} // namespace holdfast::html
