// The operation that makes a link, which anyone may read with (share.hpp).
#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/token.hpp"
#include "services/serve/api/table.hpp"
#include "services/serve/share.hpp"

namespace holdfast::serve {

namespace {

using namespace schema;

constexpr ApiField kShared[] = {{"snapshot", kId, "A snapshot"},
                                {"url", kWords, "A URL: all of its captures"},
                                {"shelf", kWord, "Name or id of a shelf"},
                                {"expires", kDuration, "How long the link is valid, at most 5 years (30d)"}};

Response share(const ApiCall& call) {
  if (!call.options.file_url)
    throw base::Error(base::ErrorClass::refused, "this server has no files of the archive to share");
  store::SharedThing what;
  what.snapshot = call.body.contains("snapshot") ? std::optional(call.text("snapshot")) : std::nullopt;
  if (call.body.contains("url")) what.url = base::parse_url(call.text("url")).text;
  if (call.body.contains("shelf")) what.shelf = call.text("shelf");
  const auto secret = store::share_add(call.connection, call.new_id, what,
                                       base::parse_duration(call.body.value("expires", "30d")), call.caller.by());
  auto owner = call.caller;
  if (secret) owner.files_key = std::string(kShare) + *secret;
  const Json link = secret ? Json(call.options.file_url(call.request, owner, "")) : Json(nullptr);
  return json_response({{"changed", secret.has_value()}, {"id", store::share_id(call.new_id)}, {"link", link}},
                       secret ? 201 : 200);
}

const ApiOperation kShareOperations[] = {
    {"POST",
     "v1/shares",
     "share",
     "Make a link by which anyone may read a snapshot, the captures of a URL or a shelf",
     &share,
     "Shared",
     {},
     kShared,
     201},
};

} // namespace

std::span<const ApiOperation> api_shares() { return kShareOperations; }

} // namespace holdfast::serve
