#include "tests/fuzz/targets.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/inflater.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/config/settings.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/list.hpp"
#include "lib/hooks/record.hpp"
#include "lib/robots/robots.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/extract/readable.hpp"
#include "services/egress/message.hpp"
#include "services/serve/http_message.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace holdfast::fuzz {
namespace {

constexpr std::size_t kMostUnpacked = 1 << 20;

void must(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", promise);
  std::abort();
}

// A reader may refuse its input, and in no other way.
template <class Read>
void may_refuse(Read&& read) {
  try {
    read();
  } catch (const base::Error& error) {
    must(error.error_class() != base::ErrorClass::bug, "input is refused, and is no bug of ours");
  }
}

base::Fd file_of(std::string_view bytes) {
  base::Fd file(::memfd_create("fuzz", MFD_CLOEXEC));
  must(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "there is memory");
  return file;
}

// The first byte says where the stream is cut in two.
void read_records(std::string_view input) {
  if (input.empty()) return;
  const auto source = (input[0] & 1) != 0 ? hooks::RecordSource::urls_file : hooks::RecordSource::standard_output;
  const auto cut = std::min<std::size_t>(static_cast<unsigned char>(input[0]), input.size() - 1);
  input.remove_prefix(1);
  hooks::RecordReader whole(source), parted(source);
  auto records = whole.feed(input);
  const auto last = whole.finish();
  records.insert(records.end(), last.begin(), last.end());
  const auto count = parted.feed(input.substr(0, cut)).size() + parted.feed(input.substr(cut)).size();
  must(count + parted.finish().size() == records.size(), "a stream means the same however it arrives");
  hooks::DiscoveredUrls urls;
  for (auto& record : records) {
    if (auto* snapshot = std::get_if<hooks::SnapshotRecord>(&record)) {
      must(base::is_utf8(snapshot->url) && base::is_utf8(snapshot->title), "text is UTF-8");
      urls.add(std::move(*snapshot));
    }
  }
}

void read_robots(std::string_view input) {
  const auto rules = robots::parse(input);
  must(!robots::forbidding_rule(rules, "/robots.txt"), "robots.txt itself is allowed");
  (void)robots::forbidding_rule(rules, "/a/b.html?c=%20d");
  (void)robots::forbidding_rule(rules, input.substr(0, 2000));
}

void read_warc(std::string_view input) {
  const auto file = file_of(input);
  warc::Reader reader(file.get(), 0, input.size());
  std::array<char, 4096> piece;
  for (std::size_t damaged = 0; damaged <= input.size();) {
    try {
      const auto record = reader.next();
      if (!record) return;
      must(record->offset < input.size(), "a record lies in its file");
      (void)reader.read_http_head();
      std::size_t total = 0;
      while (const auto count = reader.read(piece.data(), piece.size()))
        if ((total += count) > kMostUnpacked) break;
      must(reader.finish() <= input.size(), "a record is no longer than its file");
    } catch (const warc::Damaged&) {
      ++damaged;
    }
  }
  must(false, "damage is passed over in the end");
}

// The first line is the content type.
void read_html(std::string_view input) {
  const auto line = std::min(input.find('\n'), input.size());
  const auto text = formats::decode_page(input.substr(std::min(line + 1, input.size())), input.substr(0, line));
  must(base::is_utf8(text), "a decoded page is UTF-8");
  formats::scan_html(text, [](const formats::Token& token) {
    for (const auto& [name, value] : token.attributes)
      must(base::is_utf8(name) && base::is_utf8(value), "attributes are UTF-8");
    return true;
  });
  const auto blocks = capture::readable_blocks(text);
  (void)capture::blocks_as_text(blocks);
  const auto page = capture::blocks_as_html(blocks, text.substr(0, 100), "https://example.org/");
  bool script = false;
  formats::scan_html(page, [&](const formats::Token& token) {
    script = script || (token.kind == formats::Token::Kind::start && token.text == "script");
    return true;
  });
  must(!script, "a readable page has no scripts");
}

void read_url(std::string_view input) {
  const auto url = base::try_parse_url(input);
  if (url) {
    const auto again = base::try_parse_url(url->text);
    must(again && again->text == url->text, "a canonical URL is its own canonical spelling");
    must(!url->host.empty() && !url->path.empty(), "a URL has a host and a path");
    (void)base::host_directory(*url);
    (void)warc::url_key(url->text);
  }
  (void)base::is_private_host(input);
}

// The target, the host, a range, each on a line.
void read_http(std::string_view input) {
  serve::Request request;
  const auto first = std::min(input.find('\n'), input.size());
  if (serve::read_target(input.substr(0, first), request)) {
    must(request.path.starts_with("/") && request.path.find('\0') == std::string::npos, "a path begins with a slash");
    if (serve::is_plain_path(request.path)) must(serve::is_header_value(request.path), "a plain path is a header");
  }
  input.remove_prefix(std::min(first + 1, input.size()));
  const auto second = std::min(input.find('\n'), input.size());
  std::string host;
  if (serve::read_host(input.substr(0, second), host)) must(serve::is_header_value(host), "a host is safe in headers");
  const auto range = serve::read_range(input.substr(std::min(second + 1, input.size())), 1000);
  must(range.begin <= range.end && range.end <= 1000, "a range lies in its file");
}

void read_proxy(std::string_view input) {
  may_refuse([&] {
    const auto request = egress::parse_request(input);
    must(!request.host.empty() && request.port != 0, "a request names a server");
    must(request.tunnel || request.forwarded.ends_with("\r\n\r\n"), "a forwarded head has an end");
    must(request.forwarded.find("\r\n\r\n") == request.forwarded.rfind("\r\n\r\n"), "and one only");
  });
  (void)egress::closing_response(input);
  (void)egress::is_interim(input);
  egress::ResponseEnd whole("GET"), parted("GET");
  whole.take(input);
  parted.take(input.substr(0, input.size() / 2));
  parted.take(input.substr(input.size() / 2));
  must(whole.found() == parted.found() && whole.leaves_open() == parted.leaves_open() &&
           (!whole.found() || whole.behind() == parted.behind()),
       "a response ends in one place, however it comes");
}

void read_yaml(std::string_view input) {
  const auto file = file_of(input);
  may_refuse([&] { (void)config::Settings::load("/proc/self/fd/" + std::to_string(file.get()), {}, {}); });
}

void read_import(std::string_view input) {
  auto parsers = formats::parsers();
  parsers.emplace_back("auto");
  for (const auto& parser : parsers)
    may_refuse([&] {
      for (const auto& entry : formats::read_list(input, parser).entries)
        must(base::is_utf8(entry.url) && base::is_utf8(entry.title), "entries are UTF-8");
    });
  must(base::unpack(base::Inflater(input, base::kGzip), kMostUnpacked).bytes.size() <= kMostUnpacked,
       "unpacking is bounded");
}

constexpr std::array kTargets{
    Target{"records", read_records}, Target{"robots", read_robots}, Target{"warc", read_warc},
    Target{"html", read_html},       Target{"url", read_url},       Target{"http", read_http},
    Target{"proxy", read_proxy},     Target{"yaml", read_yaml},     Target{"import", read_import}};

} // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto* found = std::find_if(kTargets.begin(), kTargets.end(), [&](const auto& one) { return one.name == name; });
  return found == kTargets.end() ? nullptr : &*found;
}

} // namespace holdfast::fuzz
