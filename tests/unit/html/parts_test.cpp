#include "lib/html/parts.hpp"

#include <doctest/doctest.h>

using namespace holdfast;

TEST_SUITE_BEGIN("parts of pages");

TEST_CASE("a path as a link can be no scheme, query or other host, whatever its bytes") {
  CHECK(html::href_of_path("a b#c?d%41\n\"<\\:\xc3\xbc") == "./a%20b%23c%3Fd%2541%0A%22%3C%5C%3A%C3%BC");
  CHECK(html::href_of_path("javascript:alert(1)") == "./javascript%3Aalert%281%29");
  CHECK(html::href_of_path("../x/y.html") == "../x/y.html");
}

TEST_CASE("only a page on the web is linked to; anything else is named") {
  CHECK(html::outside_link("https://example.com/?a=1&b", "x").text() ==
        "<a href=\"https://example.com/?a=1&amp;b\" rel=\"external noopener noreferrer\">x</a>");
  CHECK(html::outside_link("JaVaScRiPt:alert(1)", "<x>").text() == "&lt;x&gt;");
  CHECK(html::outside_link("file:///etc/passwd", "x").text() == "x");
}

TEST_CASE("facts without a value are left out") {
  html::Facts facts;
  facts.add("Depth", 0);
  facts.add("Notes", "");
  facts.add("Tags", "a & b", html::Facts::Width::wide);
  CHECK(facts.html().text() == "<dl class=\"facts\">\n<div><dt>Depth</dt><dd>0</dd></div>\n"
                               "<div class=\"wide\"><dt>Tags</dt><dd>a &amp; b</dd></div>\n</dl>");
}

TEST_CASE("a status is told by word and icon, also one without a badge of its own") {
  CHECK(html::status_badge("noresults").text().find("Found nothing") != std::string::npos);
  CHECK(html::status_badge("failed").text().find("badge bad") != std::string::npos);
  CHECK(html::status_badge("<x>").text().find("&lt;x&gt;") != std::string::npos);
}

TEST_SUITE_END();
