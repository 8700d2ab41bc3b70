/**
 * Prints where each agent's program is, as JSON. Of those that are nowhere it installs into the user's cache what
 * AGENTS_INSTALL names: `all`, or some, with commas between; by default the two of them that are most in use where CI is
 * set, else none, since they take gigabytes.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, rmdirSync, statfsSync, statSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import path from "node:path"
import { setTimeout } from "node:timers/promises"

const packages = {
  codex: "@openai/codex@0.169.0",
  claude: "@anthropic-ai/claude-code@2.1.330",
  opencode: "opencode-ai@1.18.33",
  qwen: "@qwen-code/qwen-code@0.15.10",
  cline: "cline@3.0.65",
  cn: "@continuedev/cli@1.5.47"
}
const longestInstall = 180_000

const cache = path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache"), "generation-gateway-agents")
const lock = path.join(cache, "lock")
const marker = (name) => path.join(cache, `installed-${packages[name].replaceAll("/", "-")}`)

const find = (name) =>
  [process.env.AGENTS_DIR, "/opt/agents", existsSync(marker(name)) ? cache : undefined]
    .filter((directory) => directory)
    .map((directory) => path.join(directory, "node_modules/.bin", name))
    .find((file) => existsSync(file))

const wanted = process.env.AGENTS_INSTALL ?? (process.env.CI ? "codex,claude" : "")
const missing = () =>
  Object.keys(packages).filter(
    (name) => (wanted === "all" || wanted.split(",").includes(name)) && find(name) === undefined
  )

/** A full disk would fail every other test. */
const leastFree = 3 * 1024 ** 3
const hasRoom = () => {
  const { bavail, bsize } = statfsSync(cache)
  return bavail * bsize >= leastFree
}

/** npm may leave out the scripts of packages that nobody has approved. */
const scripts = {
  claude: "@anthropic-ai/claude-code/install.cjs",
  opencode: "opencode-ai/postinstall.mjs",
  cline: "cline/postinstall.mjs"
}

const install = (name, timeout) => {
  const options = { stdio: ["ignore", "ignore", "inherit"], timeout }
  const npm = ["install", "--prefix", cache, "--no-audit", "--no-fund", "--loglevel", "error", packages[name]]
  const { status } = spawnSync("npm", npm, options)
  if (scripts[name]) spawnSync(process.execPath, [path.join(cache, "node_modules", scripts[name])], options)
  if (status === 0) writeFileSync(marker(name), "")
}

const isLocked = () => {
  try {
    mkdirSync(lock)
    return false
  } catch {
    if (existsSync(lock) && Date.now() - statSync(lock).mtimeMs > longestInstall) rmdirSync(lock)
    return true
  }
}

const deadline = Date.now() + longestInstall
mkdirSync(cache, { recursive: true })
while (missing().length > 0) {
  if (isLocked()) {
    await setTimeout(500)
    continue
  }
  for (const name of missing()) if (Date.now() < deadline && hasRoom()) install(name, deadline - Date.now())
  rmdirSync(lock)
  break
}
console.log(JSON.stringify(Object.fromEntries(Object.keys(packages).map((name) => [name, find(name)]))))
