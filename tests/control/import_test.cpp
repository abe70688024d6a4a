// What other programs export, read as they write it.
#include "lib/base/error.hpp"
#include "lib/base/inflater.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/crawl_options.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/list.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/add/plan.hpp"
#include "tests/support/packed_zeros.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace holdfast;
using namespace holdfast::cli;
using namespace holdfast::formats;
using namespace std::string_literals;

namespace {

// "URL | title | tags | when | notes" of each entry, a line each; what is empty at the end of a line is left out.
std::string read(const std::string& bytes, std::string_view parser = "auto") {
  std::string text;
  for (const auto& entry : read_list(bytes, parser).entries) {
    std::string line = entry.url + "|" + entry.title + "|" + base::join(entry.tags, ",") + "|" + entry.bookmarked_at +
                       "|" + entry.notes;
    while (line.ends_with('|'))
      line.pop_back();
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

std::string utf16(const std::string& ascii, bool big) {
  std::string bytes = big ? "\xFE\xFF" : "\xFF\xFE";
  for (const char c : ascii)
    bytes += big ? "\0"s + c : c + "\0"s;
  return bytes;
}

} // namespace

TEST_CASE("each format may be named by the users of --parser") {
  const auto options = catalog::crawl_options();
  const auto found = std::find_if(options.begin(), options.end(), [](const auto& one) { return one.name == "parser"; });
  REQUIRE(found != options.end());
  for (const auto& name : formats::parsers())
    CHECK_NOTHROW(catalog::check_schema("parser", catalog::schema_of(*found), name));
}

// One of each format that is read, as its program writes it; test_import -sc=RSS reads one.
TEST_CASE("formats of other programs") {
  struct Sample {
    const char* name;
    std::string bytes, expected;
  };
  const std::string when = "2023-11-14T22:13:20.000Z";
  const Sample samples[] = {
      {"a browser's bookmarks", R"(<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE><DL><p><DT><H3>Folder</H3><DL><p>
    <DT><A HREF="https://a.test/?x=1&amp;y=2" ADD_DATE="1700000000" TAGS="one, two">A &lt;b&gt; &#8220;c&#x201d; caf&eacute;</A>
    <DD>See <a href="https://within.test/">this</a> too
    <DT><A
       HREF='https://b.test/
       x'>Two
       lines <b>bold</b></A> <!-- <DT><A HREF="https://old.test/">old</A> -->
    <DT><A HREF="https://c.test/?a=1&copy=2&region=3&lt;4&amp;5&reg">C &copy 2 &copy2</A>
    <DT><A HREF=javascript:alert(1) ADD_DATE=0>no page</A><DT><ABBR>x</ABBR>
  </DL></DL>)",
       "https://a.test/?x=1&y=2|A <b> “c” café|one,two,Folder|" + when +
           "|See this too\nhttps://b.test/       x|Two lines bold|Folder"
           "\nhttps://c.test/?a=1&copy=2&region=3<4&5®|C © 2 ©2|Folder\njavascript:alert(1)|no page|Folder"},
      {"a page", "<html><a href=https://a.test/>A<a href='https://b.test/'>B<a href=#top>top</a>",
       "https://a.test/|A\nhttps://b.test/|B"},
      {"RSS", R"(<?xml version="1.0"?><rss version="2.0"><channel><link>https://a.test/</link>
    <item><title>One &amp; only</title><link>https://a.test/1</link><category>x</category>
          <pubDate>Tue, 14 Nov 2023 23:13:20 +0100</pubDate></item>
    <item><title>Caf&amp;eacute;</title><guid>https://a.test/2?a&amp;copy=3</guid></item>
    <item><guid isPermaLink="false">https://a.test/3</guid></item></channel></rss>)",
       "https://a.test/1|One & only|x|" + when + "\nhttps://a.test/2?a&copy=3|Café\n"},
      {"Atom", R"(<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title><updated>2024-01-01</updated>
    <published>2023-11-14T22:13:20Z</published><link rel="self" href="https://a.test/feed"/>
    <link href="https://a.test/page"/><category term="y"/></entry></feed>)",
       "https://a.test/page|T|y|" + when},
      {"RDF", "<rdf:RDF xmlns:rdf='r'><item><link>https://a.test/</link><dc:subject>x y</dc:subject></item></rdf:RDF>",
       "https://a.test/||x,y"},
      {"a sitemap",
       "<?xml version='1.0'?><urlset><url><loc> https://a.test/1 </loc><lastmod>2024</lastmod></url></urlset>",
       "https://a.test/1"},
      {"OPML", R"(<opml version="2.0"><body><outline text="F"><outline type="rss" text="Feed" xmlUrl="https://a.test/f"
       htmlUrl="https://a.test/"/><outline type="link" text="L" url="https://b.test/"/></outline></body></opml>)",
       "https://a.test/|Feed|F\nhttps://b.test/|L|F"},
      {"XBEL", R"(<?xml version="1.0"?><!DOCTYPE xbel><xbel version="1.0"><folder><title>F</title><bookmark
       href="https://a.test/" added="2023-11-14T22:13:20Z"><title>A</title><desc>N</desc></bookmark></folder></xbel>)",
       "https://a.test/|A|F|" + when + "|N"},
      {"Pinboard's XML",
       R"(<posts user="u"><post href="https://a.test/" description="A" tag="one two" time="2023-11-14T22:13:20Z"/></posts>)",
       "https://a.test/|A|one,two|" + when},
      {"Wallabag's XML", R"(<?xml version="1.0"?><wallabag><entry><id>1</id><url>https://a.test/</url><title>A</title>
       <content>x https://no.test/</content><tags><tag>t u</tag></tags><created_at>2023-11-14T22:13:20+00:00</created_at>
       </entry></wallabag>)",
       "https://a.test/|A|t u|" + when},
      {"URLs and objects in JSON",
       R"(["https://a.test/", {"url": "https://b.test/", "title": "B", "tags": [" x ", ""]}])",
       "https://a.test/\nhttps://b.test/|B|x"},
      {"Pinboard",
       R"([{"href": "https://a.test/", "description": "A", "tags": "one two", "time": "2023-11-14T22:13:20Z"}])",
       "https://a.test/|A|one,two|" + when},
      {"Pocket's API", R"({"status": 1, "list": {"7": {"resolved_url": "https://p.test/", "resolved_title": "P",
       "time_added": "1700000000", "tags": {"late": {"item_id": "7"}}},
       "8": {"resolved_url": "", "given_url": "https://g.test/", "given_title": "G"}, "9": {"resolved_url": ""}}})",
       "https://p.test/|P|late|" + when + "\nhttps://g.test/|G\n"},
      {"JSON Feed", R"({"version": "https://jsonfeed.org/version/1.1", "home_page_url": "https://no.test/", "items": [
       {"id": "1", "external_url": "https://a.test/", "date_published": "2023-11-14T22:13:20Z"}], "authors": [{"url": "x"}]})",
       "https://a.test/|||" + when},
      {"Firefox", R"({"guid": "root________", "children": [{"title": "menu", "root": "bookmarksMenuFolder",
       "children": [{"title": "A", "dateAdded": 1700000000000000, "uri": "https://a.test/", "tags": "x,y"},
       {"title": "F", "children": [{"title": "B", "uri": "https://b.test/"}]}, {"title": "empty", "children": []}]}]})",
       "https://a.test/|A|x,y|" + when + "\nhttps://b.test/|B|F"},
      {"Chromium", R"({"checksum": "0", "roots": {"bookmark_bar": {"children": [{"date_added": "13344473600000000",
       "name": "A", "type": "url", "url": "https://a.test/"}, {"name": "F", "type": "folder", "children": [{"name": "G",
       "children": [{"name": "B", "url": "https://b.test/"}]}, {"name": "C", "url": "https://c.test/"}]}], "name": "Bar"},
       "other": {"children": []}}, "version": 1})",
       "https://a.test/|A||" + when + "\nhttps://b.test/|B|F,G\nhttps://c.test/|C|F"},
      {"Wallabag", R"([{"is_archived": 0, "tags": ["t"], "title": "A", "url": "https://a.test/",
       "created_at": "2023-11-14T22:13:20+00:00", "content": "https://no.test/"}])",
       "https://a.test/|A|t|" + when},
      {"Wallabag's API", R"({"page": 1, "_links": {"self": {"href": "https://no.test/"}}, "_embedded": {"items": [
       {"url": "https://a.test/", "tags": [{"id": 1, "label": "t", "slug": "no"}]}]}})",
       "https://a.test/||t"},
      {"Karakeep", R"({"bookmarks": [{"createdAt": 1700000000, "title": null, "tags": ["t"],
       "content": {"type": "link", "url": "https://a.test/", "title": "A"}, "note": null}]})",
       "https://a.test/|A|t|" + when},
      {"Linkwarden", R"({"id": 1, "name": "me", "collections": [{"id": 1, "name": "Box", "links": [{"name": "A",
       "type": "url", "url": "https://a.test/", "tags": [{"id": 1, "name": "t"}], "description": "N",
       "createdAt": "2023-11-14T22:13:20Z"}]}, {"name": "Unorganized", "links": [{"name": "B", "url": "https://b.test/"}]}]})",
       "https://a.test/|A|t,Box|" + when + "|N\nhttps://b.test/|B"},
      {"linkding", R"({"count": 1, "next": null, "results": [{"url": "https://a.test/", "title": "",
       "website_title": "A", "tag_names": ["t"], "date_added": "2023-11-14T22:13:20Z"}]})",
       "https://a.test/|A|t|" + when},
      {"Omnivore", R"([{"slug": "a", "title": "A", "url": "https://a.test/", "savedAt": "2023-11-14T22:13:20.000Z",
       "publishedAt": null, "labels": ["t"]}])",
       "https://a.test/|A|t|" + when},
      {"Shaarli", R"([{"url": "https://a.test/", "shorturl": "x", "title": "A", "tags": ["t"],
       "created": "2023-11-14T22:13:20+00:00", "updated": ""}])",
       "https://a.test/|A|t|" + when},
      {"JSON lines",
       "{\"url\": \"https://a.test/\", \"tags\": \"x, ,y\", \"time\": 1700000000123}\n{\"url\": \"https://b.test/\"}",
       "https://a.test/||x,y|2023-11-14T22:13:20.123Z\nhttps://b.test/"},
      {"lines of a chat", "{\"content\": {\"body\": \"see https://a.test/\"}}\n{\"url\": \"https://b.test/\"}\n",
       "https://a.test/\nhttps://b.test/"},
      {"tags of PostgreSQL", "url,tags\nhttps://a.test/,\"{t,\"\"u v\"\"}\"\n", "https://a.test/||t,u v"},
      {"Pocket's table",
       "title,url,time_added,tags,status\n\"One, \"\"two\"\"\",https://a.test/,1700000000,x|y,unread\r\n\n",
       "https://a.test/|One, \"two\"|x,y|" + when},
      {"Instapaper", "URL,Title,Selection,Folder,Timestamp\nhttps://a.test/,A,,Unread,1700000000\n",
       "https://a.test/|A||" + when},
      {"Raindrop",
       "id,title,note,excerpt,url,folder,tags,created,cover\n1,A,,\"x, y\",https://a.test/,F,\"t, "
       "u\",2023-11-14T22:13:20.000Z,\n",
       "https://a.test/|A|F,t,u|" + when},
      {"Wallabag's table",
       "Title;URL;Content;Tags;\"Creation date\"\n\"A\";https://a.test/;\"see <a href=\"\"https://no.test/\"\">x</a>; "
       "y\";\"t, u v\";\"14/11/2023 22:13:20\"",
       "https://a.test/|A|t,u v|" + when},
      {"a spreadsheet", "Name\tLink\nA\thttps://a.test/\n", "https://a.test/|A"},
      {"Excel", "sep=;\nurl;title\nhttps://a.test/;A\n", "https://a.test/|A"},
      {"a table in another language", "Adresse;Notiz\nhttps://a.test/;x\nhttps://b.test/;y\n",
       "https://a.test/\nhttps://b.test/"},
      {"a table without names", "https://a.test/,Some words\nhttps://b.test/x,\n", "https://a.test/\nhttps://b.test/x"},
      {"Readwise Reader",
       "Title,URL,ID,Document tags,Saved date\nA,https://a.test/,1,\"['t', 'u v']\",2023-11-14 "
       "22:13:20+00:00\n",
       "https://a.test/|A|t,u v|" + when},
      {"Zotero",
       "\"Key\",\"Title\",\"Url\",\"Date Added\",\"Manual Tags\"\n\"K\",\"A\",\"https://a.test/\",\"2023-11-14 "
       "22:13:20\",\"t; u\"\n",
       "https://a.test/|A|t,u|" + when},
      {"Wallabag's XML of lists", R"(<?xml version="1.0"?><result><entry><tags><entry>t</entry><entry>u</entry></tags>
       <url>https://a.test/</url><title>A</title><created_at>2023-11-14T22:13:20+00:00</created_at></entry></result>)",
       "https://a.test/|A|t,u|" + when},
      {"OPML with categories", R"(<opml><body><outline text="A" url="https://a.test/" category="t,u"/></body></opml>)",
       "https://a.test/|A|t,u"},
      {"XML of any program", "<list><bookmark><url>https://a.test/</url><title>A</title></bookmark></list>",
       "https://a.test/|A"},
      {"a line that is a URL is that URL, whatever it holds and ends with",
       "https://a.test/Jeopardy!\nhttps://a.test/Acme_Inc.\nhttps://a.test/why?\nhttps://a.test/*\nhttps://a.test/x|y\n"
       "https://a.test/q;\nhttps://a.test/it's'\nHTTPS://a.test/(\nhttps://a.test/a;b,c:d\n",
       "https://a.test/Jeopardy!\nhttps://a.test/Acme_Inc.\nhttps://a.test/why?\nhttps://a.test/*\nhttps://a.test/x|y\n"
       "https://a.test/q;\nhttps://a.test/it's'\nHTTPS://a.test/(\nhttps://a.test/a;b,c:d"},
      {"a mark that ends several lines separates them", "https://a.test/,\nhttps://b.test/;\nhttps://c.test/",
       "https://a.test/\nhttps://b.test/\nhttps://c.test/"},
      {"a title with a URL", "https://a.test/ | See https://no.test/\n", "https://a.test/|See https://no.test/"},
      {"a shortcut of Windows", "[InternetShortcut]\r\nURL=https://a.test/\r\nIconFile=https://a.test/favicon.ico\r\n",
       "https://a.test/"},
      {"a shortcut of Edge, with a blank",
       "[{000214A0-0000-0000-C000-000000000046}]\r\nProp3=19,2\r\n[InternetShortcut]\r\nURL=https://a.test/?q=a b\r\n"
       "IconFile=https://a.test/favicon.ico\r\n",
       "https://a.test/?q=a%20b"},
      {"a shortcut of a Linux desktop",
       "[Desktop Entry]\nName=See https://no.test/\nType=Link\nURL=https://a.test/\nIcon=https://no.test/i.png\n",
       "https://a.test/"},
      {"a table with the line ends of old Macs", "url,title\rhttps://a.test/,A\rhttps://b.test/,B\r",
       "https://a.test/|A\nhttps://b.test/|B"},
      {"a quote within a cell of a table", "url,title\nhttps://a.test/,5\" disk\nhttps://b.test/,\"B, C\"\n",
       "https://a.test/|5\" disk\nhttps://b.test/|B, C"},
      {"lines that go on in a calendar", "BEGIN:VCALENDAR\r\nURL:https://a.test/lo\r\n ng\r\n",
       "BEGIN:VCALENDAR\nhttps://a.test/long"},
      {"sentence marks of other scripts in a line that is a URL", "https://a.test/モーニング娘。\nhttps://a.test/«b»\n",
       "https://a.test/モーニング娘。\nhttps://a.test/«b»"},
      {"a host that is no link", "https://a[.]test/x\nhttps://b.test/\n", "https://a[.]test/x\nhttps://b.test/"},
      {"a link of Markdown with blanks", "see [x](<https://a.test/a b.pdf>) and <https://b.test/>",
       "https://a.test/a%20b.pdf\nhttps://b.test/"},
      {"OneTab and other tab keepers",
       R"({"v": "https://no.test/", "tabGroups": [{"id": "x", "tabsMeta": [{"url": "https://a.test/", "title": "A"}]}]})",
       "https://a.test/|A"},
      {"Mastodon", R"({"id": "b.json", "type": "OrderedCollection", "orderedItems": ["https://a.test/@u/1"]})",
       "https://a.test/@u/1"},
      {"Google Takeout",
       R"({"Browser History": [{"title": "A", "url": "https://a.test/", "time_usec": 1700000000000000}]})",
       "https://a.test/|A||" + when},
      {"Shiori", R"({"bookmarks": [{"url": "https://a.test/", "title": "A", "createdAt": "2023-11-14 22:13:20",
       "tags": [{"id": 1, "name": "t"}]}], "page": 1})",
       "https://a.test/|A|t|" + when},
      {"Readeck", R"([{"href": "https://no.test/api/x", "url": "https://a.test/", "title": "A", "labels": ["t"],
       "created": "2023-11-14T22:13:20Z"}])",
       "https://a.test/|A|t|" + when},
      {"Google Reader, Inoreader", R"({"id": "user/1/starred", "items": [{"title": "A", "published": 1700000000,
       "canonical": [{"href": "https://a.test/"}], "alternate": [{"href": "https://a.test/", "type": "text/html"}]}]})",
       "https://a.test/|A||" + when},
      {"Tab Session Manager",
       R"([{"name": "s", "windows": {"1": {"2": {"url": "https://a.test/", "title": "A"}, "3": {"title": "none"}}}}])",
       "https://a.test/|A\n|none"},
      {"lines of arrays", "[\"https://a.test/\", \"A\"]\n[\"https://b.test/\", \"B\"]\n",
       "https://a.test/\nhttps://b.test/"},
      {"a sitemap with other languages", R"(<?xml version="1.0"?><urlset xmlns:xhtml="x"><url><xhtml:link
       rel="alternate" hreflang="de" href="https://a.test/de"/><loc>https://a.test/1</loc></url></urlset>)",
       "https://a.test/1"},
      {"a podcast", R"(<rss><item><title>A</title><enclosure url="https://a.test/1.mp3"/></item>
       <item><link>https://a.test/2</link><enclosure url="https://no.test/2.mp3"/></item></rss>)",
       "https://a.test/1.mp3|A\nhttps://a.test/2"},
      {"Zotero's RDF", R"(<rdf:RDF xmlns:rdf="r"><bib:Document rdf:about="https://a.test/"><dc:subject>t u</dc:subject>
       <dc:title>A</dc:title><dcterms:dateSubmitted>2023-11-14 22:13:20</dcterms:dateSubmitted></bib:Document>
       <z:Attachment rdf:about="#item_3"/></rdf:RDF>)",
       "https://a.test/|A|t u|" + when},
      {"Evernote", R"(<?xml version="1.0"?><!DOCTYPE en-export SYSTEM "http://no.test/evernote-export4.dtd"><en-export>
       <note><title>A</title><created>20231114T221320Z</created><tag>t</tag><tag>u</tag><note-attributes><source-url
       >https://a.test/?x=1&amp;y</source-url></note-attributes><content>https://no.test/</content></note><note>
       <title>B</title><content><![CDATA[<!DOCTYPE en-note SYSTEM "http://no.test/enml2.dtd"><en-note><a
       href="https://b.test/?x=1&amp;y">b</a></en-note>]]></content></note></en-export>)",
       "https://a.test/?x=1&y|A|t,u|" + when + "\nhttps://b.test/?x=1&y"},
      {"Slack",
       R"([{"type": "message", "text": "see <https://a.test/|a> and <https://b.test/>", "ts": "1700000000.0001"},
       {"text": "x", "attachments": [{"title": "T", "from_url": "https://c.test/"}]}, {"text": "none"}])",
       "https://a.test/\nhttps://b.test/\nhttps://c.test/\n|none"},
      {"Matrix", R"({"room_name": "x", "messages": [{"content": {"body": "see https://a.test/, ok"}, "type": "m"}]})",
       "https://a.test/"},
      {"Telegram",
       R"({"name": "x", "messages": [{"id": 1, "text": [{"type": "link", "text": "https://a.test/"}, " hi"]},
       {"text": [{"type": "text_link", "text": "B", "href": "https://b.test/"}]}]})",
       "https://a.test/\nhttps://b.test/|B"},
      {"a notebook",
       R"({"cells": [{"cell_type": "markdown", "source": ["see [x](https://a.test/)\n"]}], "metadata": {}})",
       "https://a.test/"},
      {"a tree of tabs", R"([{"url": "https://a.test/", "children": [{"url": "https://b.test/", "title": "B"}]}])",
       "https://a.test/\nhttps://b.test/|B"},
      {"a history of videos", R"([{"title": "A", "titleUrl": "https://a.test/", "time": "2023-11-14T22:13:20Z",
       "subtitles": [{"name": "C", "url": "https://no.test/"}]}])",
       "https://a.test/|A||" + when},
      {"an index of the Wayback Machine", R"([["urlkey", "original"], ["test,a)/", "https://a.test/"]])",
       "https://a.test/"},
      {"documents of JSON in a row, as jq prints them",
       "{\n  \"url\": \"https://a.test/\"\n}\n{\n  \"url\": \"https://b.test/\"\n}\n",
       "https://a.test/\nhttps://b.test/"},
      {"JSON with half a character", R"([{"url": "https://a.test/", "title": "\\ud83d \ud83d\ude00 \ud83d"}])",
       "https://a.test/|\\ud83d 😀 \uFFFD"},
      {"a table between bars", "\n\ntitle|url|tags\nA|https://a.test/|t\n", "https://a.test/|A|t"},
      {"a mailbox",
       "From a@b Tue Nov 14 22:13:20 2023\nContent-Transfer-Encoding: quoted-printable\n\n"
       "https://a.test/?x=3D1&y=\n=3D2\n\nFrom a@b Tue Nov 14 22:13:20 2023\n\nhttps://b.test/?x=3D1\n",
       "From a@b Tue Nov 14 22:13:20 2023\nContent-Transfer-Encoding: quoted-printable\nhttps://a.test/?x=1&y=2\n"
       "From a@b Tue Nov 14 22:13:20 2023\nhttps://b.test/?x=3D1"},
      {"a mail in parts",
       "MIME-Version: 1.0\n\n--x\ncontent-type: text/plain; charset=iso-8859-1\nCONTENT-TRANSFER-ENCODING: Base64\n\n"
       "aHR0cHM6Ly9h\nLnRlc3QvP/w=\n--x--\n",
       "MIME-Version: 1.0\n--x\ncontent-type: text/plain; charset=iso-8859-1\nCONTENT-TRANSFER-ENCODING: Base64\n"
       "https://a.test/?ü\n--x--"},
      {"Readability", R"({"bookmarks": [{"article__url": "https://a.test/", "article__title": "A", "favorite": false,
       "date_added": "2023-11-14T22:13:20"}], "recommendations": []})",
       "https://a.test/|A||" + when},
      {"NewsBlur", R"({"stories": [{"story_title": "A", "story_permalink": "https://a.test/", "user_tags": ["t"],
       "story_content": "https://no.test/", "starred_date": "2023-11-14 22:13:20", "image_urls": ["https://no.test/"]
       }]})",
       "https://a.test/|A|t|" + when},
      {"GitHub", R"([{"name": "A", "url": "https://no.test/", "html_url": "https://a.test/", "topics": ["t"]}])",
       "https://a.test/|A"},
      {"Arc", R"({"sidebar": {"containers": [{"items": ["x", {"data": {"tab": {"savedURL": "https://a.test/",
       "savedTitle": "A"}}}]}]}})",
       "https://a.test/|A"},
      {"Are.na",
       R"({"contents": [{"title": "A", "source": {"url": "https://a.test/", "provider": {"url": "https://no.test/"}},
       "image": {"thumb": {"url": "https://no.test/a.png"}}}]})",
       "https://a.test/"},
      {"Discord", R"({"messages": [{"content": "see https://a.test/ and https://b.test/", "embeds": [{"title": "A",
       "url": "https://a.test/"}], "mentions": [{"avatarUrl": "https://no.test/"}],
       "reactions": [{"emoji": {"imageUrl": "https://no.test/"}}]}]})",
       "https://a.test/\nhttps://b.test/"},
      {"Instagram", R"({"saved_saved_media": [{"title": "u", "string_map_data": {"Saved on": {"href": "https://a.test/",
       "timestamp": 1700000000}}}]})",
       "https://a.test/|||" + when},
      {"a list that has a page itself",
       R"({"webpage_url": "https://l.test/", "title": "L", "url": "x", "entries": [{"url": "https://a.test/"}]})",
       "https://l.test/|L\nhttps://a.test/"},
      {"a page that has pictures", R"({"url": "https://a.test/", "images": [{"url": "https://no.test/"}]})",
       "https://a.test/"},
      {"a browser's history in a table", "DateTime,NavigatedToUrl,PageTitle\n2023-11-14T22:13:20Z,https://a.test/,A\n",
       "https://a.test/|A||" + when},
      {"Tiny Tiny RSS", R"(<?xml version="1.0"?><articles><article><title><![CDATA[A]]></title><content>https://no.test/
       </content><link>https://a.test/</link><tag_cache>t,u</tag_cache><updated>2023-11-14 22:13:20</updated></article>
       </articles>)",
       "https://a.test/|A|t,u|" + when},
      {"XSPF", R"(<?xml version="1.0"?><playlist version="1" xmlns="http://xspf.org/ns/0/"><title>L</title>
       <location>https://no.test/list.xspf</location><trackList><track><location>https://a.test/1.ogg</location>
       <location>https://no.test/mirror.ogg</location><title>One</title><info>https://no.test/</info>
       <image>https://no.test/i.png</image></track><track><info>https://b.test/</info><title>Two</title></track>
       </trackList></playlist>)",
       "https://a.test/1.ogg|One\nhttps://b.test/|Two"},
      {"M3U",
       "\xEF\xBB\xBF#EXTM3U\r\n#PLAYLIST:L\r\n#EXTINF:12 logo=\"https://no.test/a,b\",One, two\r\n"
       "https://a.test/1.ogg\r\n\r\n#EXTINF:-1,\r\nhttps://b.test/2\r\n../3.ogg\r\n",
       "https://a.test/1.ogg|One, two\nhttps://b.test/2\n../3.ogg"},
      {"no playlist but HLS", "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\nhttps://a.test/0.ts\n#EXT-X-ENDLIST\n",
       "https://a.test/0.ts"},
      {"KDE", R"(<xbel><bookmark href="https://a.test/"><title>A</title><info><metadata owner="http://www.kde.org">
       <time_added>1700000000</time_added></metadata></info></bookmark></xbel>)",
       "https://a.test/|A||" + when},
      {"XML without bookmarks: Safari", R"(<?xml version="1.0"?>
       <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://no.test/DTDs/PropertyList-1.0.dtd">
       <plist xmlns:x="http://no.test/"><dict><key>URLString</key><string>https://a.test/</string></dict>
       <note href="https://b.test/"/></plist>)",
       "https://a.test/\nhttps://b.test/"},
  };
  for (const auto& sample : samples)
    SUBCASE(sample.name) {
      CHECK(read(sample.bytes) == sample.expected);
      for (std::size_t size = 0; size < sample.bytes.size(); ++size) // cut off: read or refused
        try {
          read_list(sample.bytes.substr(0, size));
        } catch (const base::Error&) {
        }
    }
}

TEST_CASE("a format that does not fit gives way, and a broken one is named") {
  CHECK(read("[Tides](https://a.test/x)\n-[Two](https://b.test/)") == "https://a.test/x\nhttps://b.test/");
  CHECK(read("<https://a.test/x>\nhttps://b.test/") == "https://a.test/x\nhttps://b.test/");
  CHECK(read("[[https://a.test/x][Title]]\n") == "https://a.test/x");
  CHECK(read("{draft} https://a.test/x\n") == "https://a.test/x");
  CHECK(read("<p align=center>[A](https://a.test/x)\n") == "https://a.test/x");
  CHECK(read("my link, my url: https://a.test/x\n") == "https://a.test/x");
  CHECK(read("url,title\nno table after all, see https://a.test/x\n").ends_with("https://a.test/x"));
  CHECK(read("https://a.test/?url=1,2\n") == "https://a.test/?url=1,2");
  CHECK(read("").empty());
  CHECK(read("{\n  \"items\": []\n}").empty());
  for (const char* broken :
       {"[{", "{\n \"items\": [", "[\"https://a.test/\"", "<rss><item>", "<?xml version='1.0'?><opml>",
        "url,title\nhttps://a.test/,\"A\nhttps://b.test/,B\n", "[{\"url\": \"https://a.test/\", \"time\": 1e999}]"}) {
    CAPTURE(broken);
    CHECK_THROWS_WITH_AS(read_list(broken), doctest::Contains("not valid"), base::Error);
    CHECK_NOTHROW(read_list(broken, "txt"));
  }
  CHECK_THROWS_AS(read_list("a,b\n1,2", "csv"), base::Error);
  CHECK(read_list("<sitemapindex><sitemap><loc>https://a.test/s.xml</loc></sitemap></sitemapindex>").index);
  for (const char* binary : {"PK\3\4", "mozLz40\0", "SQLite format 3", "bplist00", "%PDF-1.7"}) {
    CAPTURE(binary);
    try {
      read_list(std::string(binary) + " https://a.test/");
      FAIL("it was read");
    } catch (const base::Error& error) {
      CHECK_FALSE(error.hint().empty());
    }
  }
  CHECK_THROWS_WITH_AS(read_list("\x89PNG\r\n\0https://a.test/"s), "not a text file", base::Error);
  // No external entity is read, none of one's own multiplies.
  const auto xml =
      read(R"(<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd"><!ENTITY f "&e;&e;">]>
    <rss><item><title>&e;&f;</title><link>https://a.test/</link></item></rss>)");
  CHECK(xml.find("root") == std::string::npos);
  CHECK_THROWS_AS(read_list(std::string(100'000, '[')), base::Error);
  std::string deep;
  for (int i = 0; i < 10'000; ++i)
    deep += "{\"children\":[";
  CHECK_NOTHROW(read_list(deep + std::string(10'000, ' '), "txt"));
}

TEST_CASE("URLs in text are what a reader would copy") {
  const std::pair<std::string, std::string> texts[] = {
      {"[a](https://x.test/a),[b](https://x.test/b)", "https://x.test/a https://x.test/b"},
      {"[c](https://x.test/c)/[d](https://x.test/d_(e))", "https://x.test/c https://x.test/d_(e)"},
      {"![i](https://x.test/i.png \"a title\") [r]: https://x.test/r", "https://x.test/i.png https://x.test/r"},
      {"[[https://x.test/o][Org]] [[https://x.test/p]]", "https://x.test/o https://x.test/p"},
      {"\\href{https://x.test/a\\_b\\%20c}{T} \\url{https://x.test/\\~u}", "https://x.test/a_b%20c https://x.test/~u"},
      {"https://x.test[AsciiDoc] and https://[2001:db8::1]/a[1].jpg", "https://x.test https://[2001:db8::1]/a[1].jpg"},
      {"https://x.test/a,https://x.test/b;https://x.test/c|https://x.test/d",
       "https://x.test/a https://x.test/b https://x.test/c https://x.test/d"},
      {"https://x.test/ahttps://x.test/b", "https://x.test/a https://x.test/b"},
      {"https://web.test/2020/https://x.test/a?u=https://y.test/",
       "https://web.test/2020/https://x.test/a?u=https://y.test/"},
      {"\"https://x.test/a\" 'https://x.test/b' «https://x.test/c» „https://x.test/d“ ‘https://x.test/e’",
       "https://x.test/a https://x.test/b https://x.test/c https://x.test/d https://x.test/e"},
      {"「https://x.test/a」、（https://x.test/b）。見https://x.test/c，https://x.test/d！ ؟https://x.test/e؟",
       "https://x.test/a https://x.test/b https://x.test/c https://x.test/d https://x.test/e"},
      {"https://x.test/O'Reilly https://x.test/A–B https://x.test/東京 https://x.test/a—so",
       "https://x.test/O'Reilly https://x.test/A–B https://x.test/東京 https://x.test/a"},
      {"HTTP://X.test/P A title. Https://y.test/q?", "HTTP://X.test/P Https://y.test/q"},
      {"**https://x.test/a** _https://x.test/b_ ~~https://x.test/c~~ https://x.test/d_",
       "https://x.test/a https://x.test/b https://x.test/c https://x.test/d_"},
      {"(see https://x.test/a). https://x.test/b... https://x.test/c(see d) https://x.test/?a[]=1&b={c}",
       "https://x.test/a https://x.test/b https://x.test/c https://x.test/?a[]=1&b={c}"},
      {"<https://x.test/a> `https://x.test/b` https://x.test/c\xC2\xA0next https:// http://.",
       "https://x.test/a https://x.test/b https://x.test/c"},
      {"https://x.test/a.https://x.test/b http://https://x.test/c",
       "https://x.test/a https://x.test/b https://x.test/c"},
      {"https://x.test/a– =https://x.test/b= /https://x.test/c/ +https://x.test/d+ k=https://x.test/?e=",
       "https://x.test/a https://x.test/b https://x.test/c https://x.test/d https://x.test/?e="},
      {"[url]https://x.test/a[/url] [b=https://x.test/b]c[/b]", "https://x.test/a https://x.test/b"},
      {"<a href=\"https://x.test/?a=1&amp;b=2&amp;c\">", "https://x.test/?a=1&b=2&c"},
      {"\u200Fhttps://x.test/a\u200F https://x.test/می\u200Cخواهم", "https://x.test/a https://x.test/می\u200Cخواهم"},
      {"&lt;a href=&quot;https://x.test/?a=1&amp;b=2&quot;&gt;https://x.test/b&lt;/a&gt; &#39;https://x.test/c&#39;",
       "https://x.test/?a=1&b=2 https://x.test/b https://x.test/c"},
      {"{\"a\":\"https:\\/\\/x.test\\/a?b=1\",\"t\":\"HTTP:\\/\\/x.test\\/b\\n\"}",
       "https://x.test/a?b=1 HTTP://x.test/b"},
      {"\\(https://x.test/a\\) [a](https://x.test/b\\(c\\))", "https://x.test/a https://x.test/b(c)"},
      {"link:https://x.test/a[Title]. https://x.test/[slug]/a.js https://x.test/a[1] https://x.test/?a[b]",
       "https://x.test/a https://x.test/[slug]/a.js https://x.test/a[1] https://x.test/?a[b]"},
      {"https://x.test/a։ https://x.test/b። https://x.test/c→https://x.test/d https://x.test/e။",
       "https://x.test/a https://x.test/b https://x.test/c https://x.test/d https://x.test/e"},
      {"nothing http here", ""},
  };
  for (const auto& [text, urls] : texts) {
    CAPTURE(text);
    CHECK(base::join(urls_in(text), " ") == urls);
  }
}

TEST_CASE("any encoding, and no character lost that was there") {
  const std::string html =
      "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><DT><A HREF=\"https://a.test/\" TAGS=\"x\">T</A></DL>";
  for (const bool big : {false, true}) {
    CHECK(read(utf16("https://a.test/\r\nhttps://b.test/\r\n", big)) == "https://a.test/\nhttps://b.test/");
    CHECK(read(utf16(html, big)) == "https://a.test/|T|x");
    CHECK(read(utf16("[{\"url\":\"https://a.test/\"}]", big).substr(2)) == "https://a.test/"); // no mark
  }
  CHECK(read("\xEF\xBB\xBFhttps://a.test/\r\n") == "https://a.test/");
  CHECK(read("\xEF\xBB\xBFurl,title\nhttps://a.test/,é\n") == "https://a.test/|é");
  CHECK(read("\xEF\xBB\xBF[\"https://a.test/\"]") == "https://a.test/");
  CHECK(read("\xFF\xFE\0\0h\0\0\0t\0\0\0t\0\0\0p\0\0\0:\0\0\0/\0\0\0/\0\0\0a\0\0\0.\0\0\0b\0\0\0"s) == "http://a.b");
  CHECK(
      read("<META HTTP-EQUIV=Content-Type CONTENT='text/html; charset=ISO-8859-2'><A HREF=https://a.test/>\xB1</A>") ==
      "https://a.test/|ą");
  CHECK(
      read("<?xml version='1.0' encoding='windows-1251'?><opml><outline text='\xCC' url='https://a.test/'/></opml>") ==
      "https://a.test/|М");
  CHECK(read("<META charset=utf-8><A HREF=https://a.test/>Caf\xE9 \xC3\xA9</A>") == "https://a.test/|Café é");
  CHECK(read("url,title\nhttps://a.test/,\x93Z\xFCrich\x94\n") == "https://a.test/|“Zürich”");
  CHECK(decode_file("plain \xEF\xBF\xBD") == "plain \xEF\xBF\xBD");
}

TEST_CASE("what does not say its encoding") {
  struct Sample {
    const char *encoding, *bytes, *text;
  };
  const Sample samples[] = {
      {"Shift_JIS", "\x8d\xa1\x93\xfa\x82\xcc\x93\x56\x8b\x43\x97\x5c\x95\xf1", "今日の天気予報"},
      {"Shift_JIS, kana", "\x83\x5c\x83\x6a\x81\x5b", "ソニー"},
      {"EUC-JP", "\xba\xa3\xc6\xfc\xa4\xce\xc5\xb7\xb5\xa4\xcd\xbd\xca\xf3", "今日の天気予報"},
      {"ISO-2022-JP", "\x1b$B:#F|$NE75$\x1b(B", "今日の天気"},
      {"GBK", "\xbd\xf1\xcc\xec\xb1\xb1\xbe\xa9\xb5\xc4\xcc\xec\xc6\xf8\xba\xdc\xba\xc3", "今天北京的天气很好"},
      {"EUC-KR", "\xc7\xd1\xb1\xb9\xbe\xee \xc0\xa7\xc5\xb0\xb9\xe9\xb0\xfa", "한국어 위키백과"},
      {"Windows 1251", "\xcf\xee\xe3\xee\xe4\xe0 \xe2 \xcc\xee\xf1\xea\xe2\xe5", "Погода в Москве"},
      {"KOI8-R", "\xf0\xcf\xc7\xcf\xc4\xc1 \xd7 \xed\xcf\xd3\xcb\xd7\xc5", "Погода в Москве"},
      {"Windows 1253", "\xca\xe1\xeb\xe7\xec\xdd\xf1\xe1 \xea\xfc\xf3\xec\xe5", "Καλημέρα κόσμε"},
      {"Windows 1250", "P\xf8\xedli\x9a \x9elu\x9dou\xe8k\xfd k\xf9\xf2", "Příliš žluťoučký kůň"},
      {"Windows 1252", "\x93L\x92\xe9t\xe9\x94 \x96 O\xf9 est la biblioth\xe8que", "“L’été” – Où est la bibliothèque"},
      {"Windows 1252, a byte without a letter", "Z\xfcrich \x81", "Zürich \u0081"},
      {"UTF-8 with a stray byte", "Z\xc3\xbcrich \xfc", "Zürich ü"},
  };
  for (const auto& sample : samples) {
    CAPTURE(sample.encoding);
    const std::string bytes = sample.bytes, text = sample.text;
    CHECK(decode_file(bytes) == text);
    if (std::string(sample.encoding).starts_with("UTF-8")) continue;
    CHECK(decode_page("<title>" + bytes + "</title>", "text/html") == "<title>" + text + "</title>");
    if (bytes.find("\x81") == bytes.npos)
      CHECK(read("url;title\nhttps://a.test/;" + bytes + "\n") == "https://a.test/|" + text);
  }
}

TEST_CASE("times in every unit, and none that is not there") {
  const std::pair<const char*, const char*> times[] = {{"1700000000", "2023-11-14T22:13:20.000Z"},
                                                       {"1700000000123", "2023-11-14T22:13:20.123Z"},
                                                       {"1700000000123456", "2023-11-14T22:13:20.123Z"},
                                                       {"1700000000123456789", "2023-11-14T22:13:20.123Z"},
                                                       {"13344473600000000", "2023-11-14T22:13:20.000Z"},
                                                       {"2023-11-14T22:13:20Z", "2023-11-14T22:13:20.000Z"},
                                                       {"31 Jan 2021 00:00:00 GMT", "2021-01-31T00:00:00.000Z"},
                                                       {"1700000000.123", "2023-11-14T22:13:20.123Z"},
                                                       {"2023-11-14T22:13", "2023-11-14T22:13:00.000Z"},
                                                       {"2023-11-14 22:13:20 UTC", "2023-11-14T22:13:20.000Z"},
                                                       {"2023/11/14 22:13:20", "2023-11-14T22:13:20.000Z"},
                                                       {"20231114221320", "2023-11-14T22:13:20.000Z"},
                                                       {"2023-11", "2023-11-01T00:00:00.000Z"},
                                                       {"2023", "2023-01-01T00:00:00.000Z"},
                                                       {"2023-11-14T22:13:20 soon", ""},
                                                       {"2023-11-14T22:13:20\u221202:00", ""},
                                                       {"0", ""},
                                                       {"-1", ""},
                                                       {"soon", ""},
                                                       {"03/04/2021", ""}};
  for (const auto& [text, time] : times) {
    CAPTURE(text);
    CHECK(read_list("<DL><A HREF=https://a.test/ ADD_DATE='"s + text + "'>A</A>").entries.at(0).bookmarked_at == time);
    CHECK(read_list("[{\"url\":\"https://a.test/\",\"added\":\""s + text + "\"}]").entries.at(0).bookmarked_at == time);
  }
}

TEST_CASE("links of a saved page are those that its base makes of them") {
  const std::pair<const char*, const char*> pages[] = {
      {"<base href=\"https://a.test/x/y\"><a href=z>A</a><a href=/q?r>B</a><a href='//b.test/'>C</a>",
       "https://a.test/x/z|A\nhttps://a.test/q?r|B\nhttps://b.test/|C"},
      {"<base target=_blank><base href=' https://a.test/\n'><base href=https://b.test/><a href=../z>A</a>",
       "https://a.test/z|A"},
      {"<base href=/x/><a href=z>A</a><a href=https://b.test/>B</a>", "z|A\nhttps://b.test/|B"},
  };
  for (const auto& [page, links] : pages)
    CHECK(read("<!doctype html>"s + page) == links);
}

TEST_CASE("dates of mail, RSS and people") {
  const std::vector<std::pair<std::string, std::string>> dates = {
      {"Thu, 04 Mar 2021 05:06:07 GMT", "2021-03-04T05:06:07.000Z"},
      {"4 Mar 2021 00:06 EST", "2021-03-04T05:06:00.000Z"},
      {"4 Mar 21 05:06:07", "2021-03-04T05:06:07.000Z"},
      {"4 Mar 99 05:06:07 UT", "1999-03-04T05:06:07.000Z"},
      {"31 Dec 2021 23:30:00 -0200", "2022-01-01T01:30:00.000Z"},
      {"Mar 4, 2021 at 5:06 PM", "2021-03-04T17:06:00.000Z"},
      {"March 4, 2021", "2021-03-04T00:00:00.000Z"},
      {"Thu, 4 Mar 2021", "2021-03-04T00:00:00.000Z"},
      {"Thursday, 04-Mar-21 05:06:07 GMT", "2021-03-04T05:06:07.000Z"},
      {"Thu Mar  4 05:06:07 2021", "2021-03-04T05:06:07.000Z"},
      {"Thu Mar 04 06:06:07 +0100 2021", "2021-03-04T05:06:07.000Z"},
      {"Thu Mar  4 05:06:07 UTC 2021", "2021-03-04T05:06:07.000Z"},
      {"Thu, 4 Mar 2021 06:06:07 +0100 (CET)", "2021-03-04T05:06:07.000Z"},
      {"2021-03-04T06:06:07+01:00[Europe/Berlin]", "2021-03-04T05:06:07.000Z"},
      {"04.03.2021 05:06:07", "2021-03-04T05:06:07.000Z"},
      {"20210304", "2021-03-04T00:00:00.000Z"},
      {"20211304", ""},
      {")", ""},
      {" (", ""},
      {"20210304T050607Z", "2021-03-04T05:06:07.000Z"},
      {"1614834367000", "2021-03-04T05:06:07.000Z"},
      {"1.614834367e15", "2021-03-04T05:06:07.000Z"},
      {"1614834367000000000", "2021-03-04T05:06:07.000Z"},
      {"13259307967000000", "2021-03-04T05:06:07.000Z"},
      {"-1", ""},
      {"2021-03-04T05:06:07,5+01:00", "2021-03-04T04:06:07.500Z"},
      {"31 Feb 2021 05:06:07 GMT", ""},
      {"4 Mrz 2021 05:06:07 GMT", ""},
      {"4 anF 2021 05:06:07 GMT", ""},
      {"4 Mar 2021 25:06:07 GMT", ""},
      {"4 Mar 2021 05:06: GMT", ""},
      {"4 Mar 2021 05:06:07 MARS", ""},
      {"4 Mar 2021 05:06:07GMT", ""},
      {"Thu, ", ""},
      {"", ""}};
  for (const auto& [text, time] : dates) {
    CAPTURE(text);
    CHECK(base::canonical_timestamp(text) == time);
  }
}

TEST_CASE("dates far ahead are refused, they would come out as others") {
  const std::vector<std::pair<std::string, std::string>> dates = {
      {"2261-12-31T23:59:59-14:00", "2262-01-01T13:59:59.000Z"},
      {"2262-01-01", ""},
      {"9999-12-31 23:59:59", ""},
      {"31 Dec 9999 23:59:59 GMT", ""},
      {"9214646399", "2261-12-31T23:59:59.000Z"},
      {"9214646400", ""},
      {"1.7e10", ""}};
  for (const auto& [text, time] : dates) {
    CAPTURE(text);
    CHECK(base::canonical_timestamp(text) == time);
  }
}

TEST_CASE("what gzip has packed") {
  const unsigned char bytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xb3, 0x29, 0x2d,
                                 0xca, 0x29, 0x4e, 0x2d, 0xb1, 0xb3, 0x01, 0xd2, 0x76, 0x36, 0x39, 0xf9, 0xc9,
                                 0x76, 0x19, 0x25, 0x25, 0x05, 0xc5, 0x56, 0xfa, 0xfa, 0xa9, 0x7a, 0x25, 0xa9,
                                 0xc5, 0x25, 0xfa, 0x36, 0xfa, 0x20, 0x41, 0x1b, 0x7d, 0xb0, 0xbc, 0x3e, 0x54,
                                 0x35, 0x00, 0x1d, 0x0b, 0xd5, 0x32, 0x36, 0x00, 0x00, 0x00};
  const std::string packed(reinterpret_cast<const char*>(bytes), sizeof bytes);
  const std::string text = "<urlset><url><loc>https://e.test/</loc></url></urlset>";
  const auto unpacked = [](const std::string& from, std::size_t most) {
    return base::unpack(base::Inflater(from, base::kGzip), most);
  };
  CHECK(unpacked(packed, 1000).bytes == text);
  CHECK(unpacked(packed + packed, 1000).bytes == text + text);
  CHECK(unpacked(packed, text.size()).whole);
  CHECK_FALSE(unpacked(packed, text.size() - 1).whole);
  CHECK(unpacked(packed + std::string(10, '\0'), 1000).whole);
  CHECK(read_list(packed).entries.size() == 1);
  CHECK(read_list(packed + packed, "txt").entries.size() == 2);
  for (std::size_t size = 2; size < packed.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(read_list(packed.substr(0, size)), base::Error);
  }
  auto broken = packed;
  broken[30] ^= 0x55;
  CHECK_THROWS_AS(read_list(broken), base::Error);
  // A thousand zeros in each byte, as often as it takes.
  CHECK_THROWS_WITH_AS(read_list(test::packed_zeros(64)), doctest::Contains("more than 16 MiB"), base::Error);
  CHECK(unpacked(test::packed_zeros(8), base::kUnpackedFreely).bytes.size() == std::size_t{8} << 20);
}

// Readers in quadratic time would not end within the time limit of the test.
TEST_CASE("time to read a list grows with its size and no faster") {
  const std::string link = "<A HREF=https://a.test/>A</A>", soft = "Content-Transfer-Encoding: quoted-printable\n\n";
  std::string nested = "<!DOCTYPE NETSCAPE-Bookmark-file-1>";
  for (int i = 0; i < 40'000; ++i)
    nested += "<DL><H3>f" + std::to_string(i) + "</H3>" + link;
  const auto deep = read_list(nested).entries;
  CHECK(deep.size() == 40'000);
  CHECK(base::join(deep.back().tags, ",") == "f39991,f39992,f39993,f39994,f39995,f39996,f39997,f39998");
  CHECK(read_list(soft + std::string(10'000'000, '=')).entries.size() == 2);
}

TEST_CASE("lists that people write: only URLs, a title behind them, or sentences") {
  const auto directory = std::filesystem::temp_directory_path() / ("holdfast-import-" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const auto urls = [&](const std::string& text) {
    std::ofstream(directory / "list.txt") << text;
    std::vector<std::string> found;
    for (const auto& seed : read_seeds({(directory / "list.txt").string()}, {}).seeds)
      found.push_back(seed.url);
    return found;
  };
  using List = std::vector<std::string>;
  CHECK(urls("# reading\n\nhttps://a.test/x\n") == List{"https://a.test/x"});
  CHECK(urls("https://a.test/x  A title\n") == List{"https://a.test/x"});
  CHECK(urls("See https://a.test/x, (https://b.test/y_(z)) and <https://c.test/>.\n") ==
        List{"https://a.test/x", "https://b.test/y_(z)", "https://c.test/"});
  CHECK_THROWS_AS(urls("a.test/x\n"), base::Error); // not a guess
  CHECK_THROWS_AS(urls("nothing here\n"), base::Error);
  std::filesystem::remove_all(directory);
}

TEST_CASE("the part of a host name that can be registered") {
  CHECK(registrable_domain("www.example.com") == "example.com");
  CHECK(registrable_domain("a.b.example.co.uk") == "example.co.uk");
  CHECK(registrable_domain("127.0.0.1") == "127.0.0.1");
  CHECK(registrable_domain("localhost") == "localhost");
}
