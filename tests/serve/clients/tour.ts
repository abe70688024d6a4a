// What a program does with the types that openapi-typescript generates; tsc --strict checks it.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [address, token, url, many] = process.argv.slice(2) as [string, string, string, string];
const { GET, POST, PATCH, DELETE } = createClient<paths>({
  baseUrl: address,
  headers: { Authorization: `Bearer ${token}` },
});

function good<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}
function check(what: string, holds: boolean) {
  if (!holds) throw new Error(what);
}

const bad = await POST("/api/v1/crawls", { body: { urls: ["http://", url] } });
check("bad URL", bad.error?.code === "urls_invalid" && bad.error.errors?.[0]?.field === "urls/0");

const { id } = good(await POST("/api/v1/crawls", { body: { urls: [url], tags: ["a, b"] } }));
if (id === null) throw new Error("nothing was added");
let crawl = good(await GET("/api/v1/crawls/{id}", { params: { path: { id } } }));
for (const end = Date.now() + 60_000; crawl.status !== "sealed"; ) {
  check("the crawl ends", Date.now() < end);
  await new Promise((later) => setTimeout(later, 200));
  crawl = good(await GET("/api/v1/crawls/{id}", { params: { path: { id } } }));
}
check("counts", crawl.total === 1 && crawl.outcome === "succeeded");

const page = good(await GET("/api/v1/snapshots", { params: { query: { crawl: id } } })).items[0];
if (page === undefined) throw new Error("no snapshot");
check("tags", page.tags.length === 1 && page.tags[0] === "a, b");
const path = { params: { path: { id: page.id } } };
check("text", good(await GET("/api/v1/snapshots/{id}/text", { ...path, parseAs: "text" })).includes("lighthouse"));
const files = good(await GET("/api/v1/snapshots/{id}/files", path)).items;
const notes = files.find((file) => file.path === "page/notes.txt");
if (!notes?.url) throw new Error("no file");
check("file", (await (await fetch(notes.url)).text()) === "plain\n");
const found = good(await GET("/api/v1/search", { params: { query: { q: "lighthouse", crawl: id } } })).items;
check("search", found.length === 1 && found[0]?.id === page.id);
check("tag", good(await PATCH("/api/v1/snapshots/{id}", { ...path, body: { add_tags: ["read"] } })).changed);
check("remove", good(await DELETE("/api/v1/snapshots/{id}", path)).changed);

const urls = new Set<string>();
for (let cursor: string | null | undefined = undefined; cursor !== null; ) {
  const query: { crawl: string; limit: number; cursor?: string } = { crawl: many, limit: 1000, ...(cursor && { cursor }) };
  const rows = good(await GET("/api/v1/snapshots", { params: { query } }));
  for (const row of rows.items) urls.add(row.url);
  cursor = rows.cursor;
}
console.log(urls.size);
