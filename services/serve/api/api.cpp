#include "services/serve/api/api.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/formats/saved_page.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/store/find.hpp"
#include "lib/store/token.hpp"
#include "lib/warc/headers.hpp"
#include "services/serve/api/table.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

namespace holdfast::serve {

namespace {

using catalog::FieldError;

unsigned status_of(base::ErrorClass kind) {
  switch (kind) {
  case base::ErrorClass::usage:
    return 400;
  case base::ErrorClass::refused:
    return 422;
  case base::ErrorClass::lease_lost:
    return 409;
  case base::ErrorClass::unavailable:
  case base::ErrorClass::temporary:
    return 503;
  default:
    return 500;
  }
}

Response problem_of(const base::Error& error) {
  const auto kind = error.error_class();
  const auto status = status_of(kind);
  if (status < 500) return problem(status, base::to_string(kind), error.what(), error.hint());
  const auto request = base::new_uuid();
  spdlog::warn("API: {} (request {})", error.what(), request);
  return problem(status, base::to_string(kind),
                 status == 503 ? outage(error) : "internal error; see the log of holdfast serve", {},
                 {{"request_id", request}});
}

Response problem_of_urls(const catalog::UrlErrors& bad) {
  auto response = problem(422, "refused", bad.what(), bad.hint(), {{"code", "urls_invalid"}});
  auto json = Json::parse(response.body);
  for (const auto& [field, detail] : bad.urls())
    json["errors"].push_back({{"field", field}, {"detail", detail}});
  response.body = base::json_text(json) + "\n";
  return response;
}

// "v1/crawls/{id}/pause" takes "v1/crawls/7f3a/pause".
std::optional<std::string> matched(std::string_view pattern, std::string_view path) {
  const auto at = pattern.find("{id}");
  if (at == std::string_view::npos) return pattern == path ? std::optional<std::string>("") : std::nullopt;
  const auto before = pattern.substr(0, at), after = pattern.substr(at + 4);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return std::nullopt;
  const auto id = path.substr(before.size(), path.size() - before.size() - after.size());
  return id.find('/') == std::string_view::npos ? std::optional<std::string>(id) : std::nullopt;
}

struct Match {
  const ApiOperation* operation{nullptr};
  std::string id, allowed; // allowed: the methods that this path has
};

Match find_operation(const Request& request) {
  Match match;
  const auto path = std::string_view(request.path).substr(kApi.size());
  for (const auto& operation : api_operations()) {
    const auto id = matched(operation.path, path);
    if (!id) continue;
    match.allowed += (match.allowed.empty() ? "" : ", ") + std::string(operation.method);
    if (operation.method == request.method && match.operation == nullptr) {
      match.operation = &operation;
      match.id = *id;
    }
  }
  return match;
}

// Each value must belong to a field and fit its schema, and no required one may be missing.
void check_fields(std::span<const ApiField> fields, const nlohmann::json& values, const char* what) {
  for (const auto& [name, value] : values.items()) {
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&, &key = name](const auto& one) { return one.name == key; });
    if (field == fields.end())
      throw FieldError(FieldError::What::unknown, name, "there is no " + std::string(what) + " \"" + name + "\" here",
                       "GET /api/openapi.json");
    catalog::check_schema(name, catalog::schema_of(*field), value);
  }
  for (const auto& field : fields)
    if (field.required && !values.contains(field.name))
      throw FieldError(FieldError::What::missing, std::string(field.name),
                       "the " + std::string(what) + " \"" + std::string(field.name) + "\" is missing",
                       "GET /api/openapi.json");
}

nlohmann::json body_of_form(const ApiOperation& operation, const Form& form) {
  auto body = nlohmann::json::object();
  for (const auto& field : operation.body)
    for (const auto& [name, text] : form) {
      if (name != field.name) continue;
      const auto& schema = catalog::schema_of(field);
      // A field that is not filled in is not given, unless the form shows what is stored.
      const bool shown = name == "notes" || name == "title" || name == "label" || operation.name == "changeShelf";
      if (text.empty() && (operation.method != "PATCH" || !shown)) continue;
      body[name] = schema["type"] == "array"            ? nlohmann::json(base::split(text, ",\r\n"))
                   : schema.contains("contentEncoding") ? nlohmann::json(base::base64_encode(text))
                                                        : catalog::value_of_text(schema, text);
    }
  return body;
}

nlohmann::json read_body(const Request& request, const ApiOperation& operation) {
  auto body = nlohmann::json::object();
  if (warc::media_type(request.content_type) == "multipart/form-data") {
    Form form;
    if (!read_form(request, form)) throw base::Error(base::ErrorClass::usage, "the body is not a form");
    body = body_of_form(operation, form);
  } else if (!request.body.empty()) {
    if (warc::media_type(request.content_type) != "application/json")
      throw base::Error(base::ErrorClass::usage, "the body is not JSON", "Content-Type: application/json");
    std::vector<std::set<std::string>> names; // of the objects that are open
    const auto take = [&](int, nlohmann::json::parse_event_t event, const nlohmann::json& read) {
      if (event == nlohmann::json::parse_event_t::object_start) names.emplace_back();
      if (event == nlohmann::json::parse_event_t::object_end) names.pop_back();
      if (event == nlohmann::json::parse_event_t::key)
        if (const auto name = read.get<std::string>(); !names.back().insert(name).second)
          throw FieldError(FieldError::What::repeated, name, "the member \"" + name + "\" is given twice");
      return true;
    };
    body = nlohmann::json::parse(request.body, take, false);
    if (!body.is_object()) throw base::Error(base::ErrorClass::usage, "the body is not a JSON object");
  }
  check_fields(operation.body, body, "member");
  return body;
}

nlohmann::json read_parameters(const Request& request, const ApiOperation& operation) {
  auto values = nlohmann::json::object();
  for (const auto& [name, text] : request.query) {
    if (values.contains(name))
      throw FieldError(FieldError::What::repeated, name, "the parameter \"" + name + "\" is given twice");
    const auto field = std::find_if(operation.parameters.begin(), operation.parameters.end(),
                                    [&, &key = name](const auto& one) { return one.name == key; });
    values[name] = field == operation.parameters.end() ? nlohmann::json(text)
                                                       : catalog::value_of_text(catalog::schema_of(*field), text);
  }
  check_fields(operation.parameters, values, "parameter");
  return values;
}

// Checks a change with If-Match: true if GET answers there with a tag that the client has seen. A path without GET has
// no tags.
bool is_as_seen(const ApiCall& call) {
  const auto& seen = call.request.if_match;
  if (seen.empty() || base::trimmed(seen) == "*") return true;
  const auto* const read = get_beside(call.operation);
  if (read == nullptr) return false;
  const auto nothing = nlohmann::json::object();
  const auto now = read->answer(
      {call.connection, call.request, call.caller, call.options, *read, call.id, call.new_id, nothing, nothing});
  return now.status == 200 && names_tag(seen, tag_of(now.body));
}

std::optional<Response> refusal_of(const Caller& caller, const ApiOperation& operation) {
  if (!caller.may_read())
    return problem(401, "unauthorized", "this needs a token", "Authorization: Bearer TOKEN; holdfast token add NAME")
        .with("WWW-Authenticate", "Bearer");
  if (operation.changes() && !caller.may_change())
    return problem(403, "forbidden", (caller.is_guest() ? "a guest" : caller.by()) + " may only read",
                   "holdfast token add NAME --role operator");
  return std::nullopt;
}

// Idempotency-Key: what a repeated POST makes has the id that the first one gave it, and is there already.
std::optional<std::string> id_of_key(pg::Connection& connection, const ApiOperation& operation, const Request& request,
                                     const Caller& caller, const nlohmann::json& body) {
  const auto& key = request.idempotency_key;
  if (key.empty() || operation.method != "POST" || body.value("dry_run", false)) return std::nullopt;
  if (key.size() > 255) throw base::Error(base::ErrorClass::usage, "Idempotency-Key: longer than 255 bytes");
  return store::api_request_once(connection, caller.by(), key, request.path + "\n" + request.body, base::new_uuid());
}

Response run_operation(const ApiOperation& operation, const std::string& id, const nlohmann::json& parameters,
                       const nlohmann::json& body, const Request& request, const Caller& caller,
                       const ApiOptions& options, const RunAs& run) {
  const auto fresh = base::new_uuid();
  return run(operation.changes() ? Role::operator_ : Role::reader, [&](pg::Connection& connection) {
    const auto new_id = id_of_key(connection, operation, request, caller, body).value_or(fresh);
    const ApiCall call{connection, request, caller, options, operation, id, new_id, parameters, body};
    if (operation.changes() && !is_as_seen(call))
      return problem(412, "refused", "this is not as you have seen it: If-Match names no present ETag",
                     "GET it again, then repeat the change");
    return operation.answer(call);
  });
}

template <class Work>
Response with_problems(Work&& work) {
  try {
    return work();
  } catch (const pg::DatabaseError& error) {
    // Data that the database cannot read, or that a constraint refuses.
    if (error.sqlstate().starts_with("22") || error.sqlstate() == "23514")
      return problem(400, "usage", std::string("invalid value: ") + error.what(), "types are in GET /api/openapi.json");
    return problem_of(error);
  } catch (const FieldError& error) {
    return problem(400, base::to_string(error.error_class()), error.what(), error.hint(),
                   {{"code", std::string(error.code())}, {"field", error.field()}});
  } catch (const catalog::UrlErrors& error) {
    return problem_of_urls(error);
  } catch (const base::Error& error) {
    // Parsers of durations and sizes throw this class for values of a request, too, not only for settings.
    if (error.error_class() == base::ErrorClass::configuration)
      return problem(400, "usage", error.what(), error.hint());
    return problem_of(error);
  }
}

} // namespace

Response json_response(const Json& json, unsigned status) {
  auto response = content("application/json", base::json_text(json) + "\n");
  response.status = status;
  return response;
}

Response not_found(const std::string& what) { return problem(404, "not_found", "there is no such " + what); }

Json array_of(const std::vector<std::string>& lines) {
  auto items = Json::array();
  for (const auto& line : lines)
    items.push_back(Json::parse(line));
  return items;
}

std::optional<std::string> target(const ApiCall& call, const std::string& kind) {
  if (!base::is_uuid(call.id)) return std::nullopt;
  try {
    const auto found = store::find(call.connection, call.id);
    return found.kind == kind ? std::optional(found.id) : std::nullopt;
  } catch (const base::Error& error) {
    if (error.error_class() == base::ErrorClass::refused) return std::nullopt;
    throw;
  }
}

namespace {

constexpr int kBatchesAtOnce = 20; // of a cancelled crawl; its workers and the runner close the rest

Response run_command(const ApiCall& call) {
  const auto& operation = catalog::operation(call.operation.name);
  const std::string kind(operation.kind());
  auto id = call.id;
  if (kind == "crawl" || kind == "snapshot" || kind == "process") {
    const auto found = target(call, kind);
    if (!found) return not_found(kind == "process" ? "worker" : kind);
    id = *found;
  }
  auto answer = operation.run(
      {call.connection, id, call.new_id, call.body, call.caller.by(), call.options.allow_private, kBatchesAtOnce});
  if (call.options.file_url && answer.contains("link") && answer["link"].is_string()) { // where this server has it
    auto owner = call.caller;
    owner.files_key = answer["link"].get<std::string>();
    answer["link"] = call.options.file_url(call.request, owner, "");
  }
  const bool made = operation.makes_crawl && answer.contains("id") && !answer["id"].is_null();
  return !made ? json_response(answer)
               : json_response(answer, 201).with("Location", "/api/v1/crawls/" + answer["id"].get<std::string>());
}

} // namespace

std::optional<std::string> ApiCall::parameter(const char* name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::nullopt : std::optional(found->get<std::string>());
}

int ApiCall::number(const char* name, int otherwise) const { return parameters.value(name, otherwise); }
bool ApiCall::flag(const char* name) const { return parameters.value(name, false); }
std::string ApiCall::text(const char* name) const { return body.value(name, std::string()); }
bool ApiCall::checked(const char* name) const { return body.value(name, false); }

std::span<const ApiOperation> api_operations() {
  static const auto all = [] {
    std::vector<ApiOperation> list;
    for (const auto part : {api_reads(), api_crawls(), api_archivebox()})
      list.insert(list.end(), part.begin(), part.end());
    for (const auto& one : catalog::operations())
      list.push_back({one.method,
                      one.path,
                      one.name,
                      one.summary,
                      &run_command,
                      one.answer,
                      {},
                      one.body,
                      one.makes_crawl ? 201u : 200u});
    return list;
  }();
  return all;
}

const ApiOperation* get_beside(const ApiOperation& operation) {
  const auto all = api_operations();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& one) { return one.method == "GET" && one.path == operation.path; });
  return found == all.end() ? nullptr : &*found;
}

Response answer_api(const Request& request, const Caller& caller, const ApiOptions& options, const RunAs& run) {
  return with_problems([&] {
    const auto match = find_operation(request);
    if (match.allowed.empty()) return problem(404, "not_found", "the API has no such path", "GET /api/openapi.json");
    if (match.operation == nullptr)
      return problem(405, "usage", "this path has " + match.allowed).with("Allow", match.allowed);
    if (auto refusal = refusal_of(caller, *match.operation)) return std::move(*refusal);
    const auto parameters = read_parameters(request, *match.operation);
    const auto body = match.operation->changes() ? read_body(request, *match.operation) : nlohmann::json::object();
    auto response = run_operation(*match.operation, match.id, parameters, body, request, caller, options, run);
    if (response.status == 200 && !match.operation->changes() && !response.watch && response.program.empty())
      tag_with_digest(request, response);
    return response;
  });
}

namespace {

// Users drop a saved page on the form that adds lists of URLs.
bool brings_page(const std::string& operation, const Form& form) {
  return operation == "addCrawl" && std::any_of(form.begin(), form.end(), [](const auto& field) {
           return field.first == "file" && formats::saved_kind(field.second) != formats::SavedKind::none;
         });
}

} // namespace

Response answer_form(const std::string& operation, const Form& form, const Request& request, const Caller& caller,
                     const ApiOptions& options, const RunAs& run) {
  const auto all = api_operations();
  const std::string chosen = brings_page(operation, form) ? "importPage" : operation;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == chosen; });
  if (found == all.end() || !found->changes()) return not_found("form");
  if (auto refusal = refusal_of(caller, *found)) return std::move(*refusal);
  return with_problems([&] {
    const bool more = std::any_of(form.begin(), form.end(), [](const auto& field) {
      return field.first == "text" && !base::trimmed(field.second).empty();
    });
    if (chosen != operation && more)
      throw base::Error(base::ErrorClass::usage, "the file is a saved page: add it without the URLs beside it");
    auto body = body_of_form(*found, form);
    std::vector<std::string> ids;
    for (const auto& [name, value] : form)
      if (name == "id" && !value.empty()) ids.push_back(value);
    const bool of_path = found->path.find("{id}") != std::string_view::npos;
    if (!of_path && !ids.empty()) body["ids"] = ids;
    if (!of_path) ids = {""};
    if (ids.empty()) throw base::Error(base::ErrorClass::usage, "nothing is selected");
    check_fields(found->body, body, "field");
    Response last;
    for (const auto& id : ids) {
      last = run_operation(*found, id, nlohmann::json::object(), body, request, caller, options, run);
      if (last.status >= 400) break;
    }
    return last;
  });
}

} // namespace holdfast::serve
