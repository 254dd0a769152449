// Bundles the page into ../chatd/page, or with --tests the unit tests into .tests/.
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const page = path.join(here, "..", "chatd", "page");

async function buildTests() {
  const folder = path.join(here, ".tests");
  await rm(folder, { recursive: true, force: true });
  const names = (await readdir(path.join(here, "test"))).filter((name) =>
    name.endsWith(".test.ts"),
  );
  await esbuild.build({
    entryPoints: names.map((name) => path.join(here, "test", name)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
  });
}

async function buildPage() {
  await rm(page, { recursive: true, force: true });
  await mkdir(path.join(page, "assets"), { recursive: true });
  const result = await esbuild.build({
    absWorkingDir: here,
    entryPoints: { main: "src/main.tsx", share: "src/share.tsx", page: "src/styles/page.css" },
    outdir: path.join(page, "assets"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    // Top-level await, which noVNC uses, needs ES2022.
    target: ["es2022"],
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    metafile: true,
    legalComments: "linked",
    logLevel: "warning",
  });
  const outputs = Object.entries(result.metafile.outputs);
  // Relative: a proxy may serve the page below a prefix.
  const entry = (source) => {
    const found = outputs.find(([, output]) => output.entryPoint === source);
    return "assets/" + path.basename(found[0]);
  };
  for (const [name, script, up] of [
    ["index.html", "src/main.tsx", ""],
    ["share.html", "src/share.tsx", "../"],
  ]) {
    const html = (await readFile(path.join(here, name), "utf8"))
      .replace("%SCRIPT%", up + entry(script))
      .replace("%STYLE%", up + entry("src/styles/page.css"));
    await writeFile(path.join(page, name), html);
  }
  // At the root, under one name: a service worker serves what is below it, and is found again by its name.
  await esbuild.build({
    absWorkingDir: here,
    entryPoints: { sw: "src/sw.ts" },
    outdir: page,
    bundle: true,
    format: "iife",
    target: ["es2022"],
    minify: true,
    logLevel: "warning",
  });
  await cp(path.join(here, "static"), path.join(page, "assets"), { recursive: true });
  // noVNC's licence wants to travel with it, and its files carry no comment that a bundler keeps.
  const licence = path.join(here, "node_modules", "@novnc", "novnc", "LICENSE.txt");
  await cp(licence, path.join(page, "assets", "noVNC-LICENSE.txt"));
  await report(outputs.map(([name]) => path.resolve(here, name)));
}

async function report(files) {
  for (const file of files) {
    const bytes = await readFile(file);
    const kib = (size) => (size / 1024).toFixed(1).padStart(7) + " KiB";
    console.log(kib(bytes.length), kib(gzipSync(bytes).length), "gzip ", path.basename(file));
  }
}

await (process.argv.includes("--tests") ? buildTests() : buildPage());
