#include "lib/base/error.hpp"
#include "lib/html/template.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace holdfast;
using html::fill;
using html::Html;
using html::List;

namespace {

std::string refusal(html::Literal text, const html::Fields& fields) {
  try {
    fill(text, fields);
  } catch (const base::Error& error) {
    CHECK(error.error_class() == base::ErrorClass::bug);
    return error.what();
  }
  return "nothing was thrown";
}

} // namespace

TEST_SUITE_BEGIN("templates");

TEST_CASE("text is escaped because it is text, and Html is not because a template made it") {
  const Html inner = fill("<b>{{x}}</b>", {{"x", "<script>\"'&"}});
  CHECK(inner.text() == "<b>&lt;script&gt;&quot;&#39;&amp;</b>");
  CHECK(fill("<p>{{y}}</p>", {{"y", inner}}).text() == "<p>" + inner.text() + "</p>");
  CHECK(fill("<p title=\"{{z}}\">", {{"z", "\" onload=\"x"}}).text() == "<p title=\"&quot; onload=&quot;x\">");
}

TEST_CASE("a value is not looked into: braces in it are text") {
  CHECK(fill("{{a}}", {{"a", "{{b}} {{#c}}"}}).text() == "{{b}} {{#c}}");
}

TEST_CASE("bytes that are no text and characters that turn the writing become U+FFFD") {
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(html::escaped("a\xff\x07z").text() == "a" + mark + mark + "z");
  CHECK(html::escaped("\xe2\x80\xaegpj.exe").text() == mark + "gpj.exe");
  CHECK(html::escaped("\xc2\x85").text() == mark);
  CHECK(html::escaped("one\n\ttwo\r").text() == "one\n\ttwo\r");
  CHECK(html::escaped("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80").text() == "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
}

TEST_CASE("a section stands once for each item of a list, whose fields come before those outside") {
  const List rows = {{{"name", "a"}, {"note", "<1>"}}, {{"name", "b"}, {"note", ""}}};
  CHECK(fill("{{#rows}}{{outside}}{{name}}{{?note}}={{note}}{{/note}};{{/rows}}",
             {{"rows", rows}, {"name", "z"}, {"outside", "-"}})
            .text() == "-a=&lt;1&gt;;-b;");
}

TEST_CASE("a section with ? or ^ stands if its value is there, or is not; empty text, false and no items are not") {
  constexpr html::Literal text = "{{?x}}yes{{/x}}{{^x}}no{{/x}}";
  CHECK(fill(text, {{"x", "text"}}).text() == "yes");
  CHECK(fill(text, {{"x", ""}}).text() == "no");
  CHECK(fill(text, {{"x", true}}).text() == "yes");
  CHECK(fill(text, {{"x", false}}).text() == "no");
  CHECK(fill(text, {{"x", 0}}).text() == "yes"); // a number is a text
  CHECK(fill(text, {{"x", List{}}}).text() == "no");
  CHECK(fill(text, {{"x", List{{{"y", "z"}}}}}).text() == "yes");
  CHECK(fill(text, {{"x", Html()}}).text() == "no");
}

TEST_CASE("sections of the same name nest: the wrapper of a list, and the list") {
  CHECK(fill("{{?rows}}<ul>{{#rows}}<li>{{n}}</li>{{/rows}}</ul>{{/rows}}", {{"rows", List{{{"n", 1}}, {{"n", 2}}}}})
            .text() == "<ul><li>1</li><li>2</li></ul>");
}

TEST_CASE("a line that holds a tag of a section alone is left out") {
  CHECK(
      fill("<ul>\n  {{#rows}}\n<li>{{n}}</li>\n  {{/rows}}\n</ul>", {{"rows", List{{{"n", 1}}, {{"n", 2}}}}}).text() ==
      "<ul>\n<li>1</li>\n<li>2</li>\n</ul>");
  CHECK(fill("a {{?x}}\nb{{/x}}\nc", {{"x", true}}).text() == "a \nb\nc");
}

TEST_CASE("a template that asks for what is not there is a bug, and names it") {
  CHECK(refusal("{{nmae}}", {{"name", "x"}}) == "HTML template: no value for \"nmae\"");
  CHECK(refusal("{{#rows}}", {{"rows", List{}}}) == "HTML template: no end of section \"rows\"");
  CHECK(refusal("{{/rows}}", {}) == "HTML template: nothing to close for \"rows\"");
  CHECK(refusal("{{#x}}{{/x}}", {{"x", "text"}}) == "HTML template: not a list: \"x\"");
  CHECK(refusal("{{x}}", {{"x", true}}) == "HTML template: neither text nor HTML: \"x\"");
}

TEST_SUITE_END();
