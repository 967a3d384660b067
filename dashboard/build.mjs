// Builds the dashboard: one page with its style and its script inside. `node build.mjs` writes it into the gateway's sources,
// `node build.mjs --check` says whether the one there is what these sources make.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const PAGE = new URL("../crates/gateway/src/admin/dashboard.html", import.meta.url);
/** The most that the page may be, compressed (bytes). */
const MOST = 150_000;

async function bundle(entry) {
  const made = await build({
    entryPoints: [new URL(entry, import.meta.url).pathname],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    charset: "utf8",
    write: false,
  });
  const text = made.outputFiles[0].text.trim();
  if (/<\/(script|style)/i.test(text)) throw new Error(`${entry} would end its own element`);
  return text;
}

const [script, style] = [await bundle("src/main.ts"), await bundle("src/page.css")];
const template = await readFile(new URL("src/page.html", import.meta.url), "utf8");
const page = template.replace("{style}", () => style).replace("{script}", () => script);
const compressed = gzipSync(page, { level: 9 }).length;
if (compressed > MOST) throw new Error(`the page is ${compressed} bytes compressed, and may be ${MOST}`);

if (process.argv.includes("--check")) {
  if ((await readFile(PAGE, "utf8")) !== page) {
    console.error("crates/gateway/src/admin/dashboard.html is not what dashboard/ makes: run `make dashboard`");
    process.exit(1);
  }
} else {
  await writeFile(PAGE, page);
  console.log(`dashboard.html: ${page.length} bytes, ${compressed} compressed`);
}
