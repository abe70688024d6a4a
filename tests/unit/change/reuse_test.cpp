#include "lib/change/reuse.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace {

using namespace holdfast::change;

Reuse captured(const std::vector<const char*>& documents, const char* inputs = "1") {
  Reuse reuse;
  reuse.from = "a";
  reuse.hooks = "h";
  reuse.inputs = inputs;
  for (const auto* document : documents)
    look_at(reuse, document, false);
  return reuse;
}

} // namespace

TEST_CASE("pages without scripts are judged by their files") {
  CHECK(reuse_limit(captured({"<p title='on'>Alert on load = no</p>"})) == 100);
  for (const auto* scripted :
       {"<SCRIPT src=a.js></script>", "<a href='javascript:x()'>", "<body onload=\"x()\">", "<img\nonerror='x()'>"})
    CHECK_MESSAGE(captured({scripted}).scripts, scripted);
}

TEST_CASE("scripts that name clock or chance need a second capture by hooks") {
  CHECK(reuse_limit(captured({"<script>a.title='x'</script>"})) == 1);
  for (const auto* restless :
       {"<script>new Date()</script>", "<script>Math.random()</script>", "<script>setInterval(f, 9)</script>"})
    CHECK(reuse_limit(captured({restless})) == 0);
  CHECK(reuse_limit(captured({"<script>x()</script>", "<script>Date.now()</script>"})) == 0);
  CHECK(reuse_limit(captured({"<script>Date.now()</script>", "<script>x()</script>"})) == 0);
}

TEST_CASE("captures by hooks adapt how many follow without") {
  const auto page = captured({"<script>Date.now()</script>"});
  auto known = after_hooks(page, page, true);
  CHECK(reuse_limit(known) == 4);
  for (const int limit : {8, 16, 32, 64, 64}) {
    known = after_hooks(known, page, true);
    CHECK(reuse_limit(known) == limit);
  }
  known.reused = 63;
  CHECK(why_hooks(known, "h") == "");
  known.reused = 64;
  CHECK(why_hooks(known, "h") == "every 65th capture checks that");
  known = after_hooks(known, page, false); // the same files, and a change: three more must agree
  for (int i = 0; i < 3; ++i, known = after_hooks(known, page, true))
    CHECK(why_hooks(known, "h") == "with the same files, the page had changed once");
  CHECK(reuse_limit(known) == 0);
  CHECK(reuse_limit(after_hooks(known, page, true)) == 4);
}

TEST_CASE("files that differ from load to load are not asked for") {
  const auto page = captured({"<p>"});
  const auto known = after_hooks(page, captured({"<p>"}, "2"), true);
  CHECK(why_hooks(known, "h") == "its files differ from load to load");
  CHECK(why_hooks(after_hooks(known, captured({"<p>"}, "2"), true), "h") == "");
  CHECK(why_hooks(after_hooks(page, captured({"<p>"}, "2"), false), "h") == ""); // a change
}

TEST_CASE("other hooks, a doubt, or nothing known let hooks run") {
  auto page = captured({"<p>"});
  CHECK(why_hooks(page, "other") == "hooks or options are others");
  CHECK(why_hooks(reuse_from(nlohmann::json::parse(R"({"from": 7})")), "h") == "no capture by hooks is known");
  page.why_not = "it sends requests that are not GET";
  CHECK(why_hooks(reuse_from(to_json(page)), "h") == page.why_not);
}
