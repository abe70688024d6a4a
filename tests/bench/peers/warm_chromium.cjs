// One Chromium that stays, one load for each page: PNG, PDF, DOM, text, title, links and a WARC of the traffic, with
// SHA-256 and fdatasync. The least that makes the artefacts of the built-in plugins: warm_chromium.cjs CHROMIUM URL...
const { createHash, randomUUID } = require("crypto");
const fs = require("fs");
const zlib = require("zlib");
const puppeteer = require("puppeteer-core");

const record = (file, type, url, head, body) => {
  const block = Buffer.concat([Buffer.from(head), body]);
  const sha1 = data => "sha1:" + createHash("sha1").update(data).digest("hex");
  const fields = [
    "WARC/1.1", `WARC-Type: ${type}`, `WARC-Record-ID: <urn:uuid:${randomUUID()}>`, `WARC-Target-URI: ${url}`,
    `WARC-Date: ${new Date().toISOString()}`, `Content-Type: application/http; msgtype=${type}`,
    `WARC-Block-Digest: ${sha1(block)}`, `WARC-Payload-Digest: ${sha1(body)}`, `Content-Length: ${block.length}`];
  fs.writeSync(file, zlib.gzipSync(Buffer.concat([Buffer.from(fields.join("\r\n") + "\r\n\r\n"), block,
    Buffer.from("\r\n\r\n")])));
};

const keep = (directory, name, data) => {
  const file = fs.openSync(`${directory}/${name}`, "w");
  fs.writeSync(file, data);
  fs.fdatasyncSync(file);
  fs.closeSync(file);
  return createHash("sha256").update(data).digest("hex") + "  " + name + "\n";
};

async function archive(browser, url, directory) {
  fs.mkdirSync(directory);
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  const responses = [];
  page.on("response", response => responses.push(response));
  await page.goto(url, { waitUntil: "load" });
  await page.waitForNetworkIdle({ idleTime: 250 });
  let sums = "";
  const height = Math.min(16000, await page.evaluate("document.documentElement.scrollHeight"));
  const clip = { x: 0, y: 0, width: 1440, height };
  sums += keep(directory, "screenshot.png",
    await page.screenshot({ clip, captureBeyondViewport: true, optimizeForSpeed: true }));
  sums += keep(directory, "output.pdf", await page.pdf({ printBackground: true }));
  sums += keep(directory, "output.html", await page.content());
  sums += keep(directory, "content.txt", await page.evaluate("document.body.innerText"));
  sums += keep(directory, "title.txt", await page.title());
  sums += keep(directory, "urls.txt", (await page.$$eval("a[href]", all => all.map(a => a.href))).join("\n"));
  const warc = fs.openSync(`${directory}/page.warc.gz`, "w");
  for (const response of responses) {
    const lines = headers => Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("") + "\r\n";
    const request = response.request(), { pathname } = new URL(request.url());
    record(warc, "request", request.url(), `${request.method()} ${pathname} HTTP/1.1\r\n${lines(request.headers())}`,
      Buffer.alloc(0));
    record(warc, "response", request.url(), `HTTP/1.1 ${response.status()} OK\r\n${lines(response.headers())}`,
      Buffer.from(await response.content().catch(() => "")));
  }
  fs.fdatasyncSync(warc);
  fs.closeSync(warc);
  keep(directory, "sha256.txt", sums);
  await context.close();
}

(async () => {
  const [executablePath, ...urls] = process.argv.slice(2);
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  const browser = await puppeteer.launch({ executablePath, args, pipe: true });
  for (const [number, url] of urls.entries()) await archive(browser, url, String(number));
  await browser.close();
})();
