#include "lib/warc/method_query.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/surt.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace holdfast::warc {

namespace {

using Json = nlohmann::ordered_json;
using Values = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kLongestQuery = 4096;

std::string form_encoded(std::string_view text) {
  auto coded = base::percent_encode(text, [](char c) {
    return base::is_alpha(c) || base::is_digit(c) || c == '_' || c == '.' || c == '-' || c == '~' || c == ' ';
  });
  std::replace(coded.begin(), coded.end(), ' ', '+');
  return coded;
}

std::string joined(const Values& values) {
  std::string query;
  for (const auto& [name, value] : values)
    query += (query.empty() ? "" : "&") + form_encoded(name) + "=" + form_encoded(value);
  return query;
}

std::string binary(std::string_view body) {
  return body.empty() ? "" : "__wb_post_data=" + base::base64_encode(std::string(body));
}

// Names and values at any depth; a name that comes again has its number.
class JsonValues {
public:
  void add(const Json& json, const std::string& name = {}) {
    if (json.is_object()) {
      for (const auto& [key, value] : json.items())
        add(value, key);
    } else if (json.is_array()) {
      for (const auto& value : json)
        add(value, name);
    } else if (!name.empty()) {
      const int count = ++counts_[name];
      values.emplace_back(count == 1 ? name : name + "." + std::to_string(count) + "_", text_of(json));
    }
  }
  Values values;

private:
  static std::string text_of(const Json& json) { // as JavaScript writes it
    if (json.is_string()) return json.get<std::string>();
    auto text = json.dump();
    if (json.is_number_float() && text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  }
  std::map<std::string, int> counts_;
};

// False: it is no JSON, nor lines of it.
bool json_query(std::string_view body, std::string& query) {
  JsonValues found;
  if (const auto whole = base::strange_json<Json>(body); !whole.is_discarded()) {
    found.add(whole);
  } else {
    if (body.find('\n') == body.npos) return false;
    for (auto rest = body; !rest.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto json = base::strange_json<Json>(line);
      if (json.is_discarded()) return false;
      found.add(json);
    }
  }
  query = joined(found.values);
  return true;
}

// The value of name="..." in a field of a part.
std::string quoted(std::string_view head, std::string_view name) {
  const auto at = head.find(std::string(name) + "=\"");
  if (at == head.npos) return {};
  const auto begin = at + name.size() + 2;
  return std::string(head.substr(begin, head.find('"', begin) - begin));
}

std::string multipart_query(std::string_view content_type, std::string_view body) {
  const auto at = content_type.find("boundary=");
  if (at == content_type.npos) return binary(body);
  const auto boundary = "--" + std::string(content_type.substr(at + 9));
  Values values;
  for (auto begin = body.find(boundary); begin != body.npos;) {
    begin += boundary.size();
    const auto end = body.find("\r\n" + boundary, begin);
    const auto part = body.substr(begin, end - begin);
    if (const auto head = part.find("\r\n\r\n"); head != part.npos)
      values.emplace_back(quoted(part.substr(0, head), " name"), part.substr(head + 4));
    begin = end == body.npos ? end : end + 2;
  }
  return joined(values);
}

std::string body_query(std::string_view type, std::string_view body) {
  std::string query;
  if (type.starts_with("application/x-www-form-urlencoded")) {
    if (!base::is_utf8(body)) return binary(body);
    return base::repair_utf8(base::form_decode(std::string(body)));
  }
  if (type.starts_with("multipart/")) return multipart_query(type, body);
  if (type.starts_with("application/json")) return json_query(body, query) ? query : "";
  if (type.starts_with("text/plain")) return json_query(body, query) ? query : binary(body);
  return binary(body);
}

} // namespace

std::string method_query(std::string_view method, std::string_view content_type, std::string_view body) {
  if (method == "GET") return {};
  auto query = "__wb_method=" + std::string(method);
  if (method != "POST" && method != "PUT") return query;
  const auto of_body = body_query(content_type, body).substr(0, kLongestQuery);
  return of_body.empty() ? query : query + "&" + of_body;
}

std::string request_key(std::string_view url, std::string_view method, std::string_view content_type,
                        std::string_view body) {
  const auto query = method_query(method, content_type, body);
  if (query.empty()) return url_key(url);
  return url_key(std::string(url) + (url.find('?') == url.npos ? "?" : "&") + query);
}

} // namespace holdfast::warc
