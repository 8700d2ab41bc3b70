import { execFile, execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { page } from "./docs/Markdown.ts"
import { eventually } from "./harness/database/Money.ts"
import { checkOutInto } from "./harness/gateway/Checkout.ts"
import * as GatewayProcess from "./harness/gateway/GatewayProcess.ts"
import { assert, describe, it } from "./harness/It.ts"
import { temporaryDirectory } from "./harness/temporary.ts"

const run = promisify(execFile)
const [, named = ""] = /Node\.js (\d+) /.exec(page("README.md").text) ?? []

/** Where the Node that the README names is: this one, or one from the user's cache, which CI fills. */
const locate = (): string | undefined => {
  if (process.versions.node.startsWith(`${named}.`)) return path.dirname(process.execPath)
  const cache = path.join(process.env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache"), "generation-gateway-node")
  const directory = path.join(cache, "node_modules/node/bin")
  if (!existsSync(path.join(directory, "node")) && process.env["CI"]) {
    const install = ["install", "--prefix", cache, "--no-audit", "--no-fund", "--loglevel", "error", `node@${named}`]
    execFileSync("npm", install, { stdio: ["ignore", "ignore", "inherit"], timeout: 180_000 })
  }
  return existsSync(path.join(directory, "node")) ? directory : undefined
}

const directory = locate()
if (directory === undefined) console.warn(`skipped: Node.js ${named} is not installed; with CI=true it will be`)

describe("the Node that the README names", () => {
  it.scopedLive.skipIf(directory === undefined)("builds, starts, and serves every line that is printed", function* () {
    const cwd = yield* temporaryDirectory
    yield* checkOutInto(cwd)
    const env = { PATH: `${directory}:${process.env["PATH"]}`, DATABASE_URL: "" }
    const sh = (line: string) =>
      Effect.map(
        Effect.promise(() => run("sh", ["-c", line], { cwd, env: { ...env, HOME: cwd } })),
        ({ stdout }) => stdout
      )
    assert.match(yield* sh("node --version"), new RegExp(`^v${named}\\.`))
    const { ended, signal, stderr, stdout } = yield* GatewayProcess.start({
      env: { ...env, PORT: "0" },
      command: { line: ["npm", "start"], cwd }
    })
    const lines = Array.from(stdout().matchAll(/^ {2}(curl .+)$/gm), ([, line = ""]) => `${line} -sS --fail-with-body`)
    const [chat, stream, image, , videos] = yield* Effect.forEach(lines, sh)
    assert.match(chat ?? "", /"object":"chat.completion"/)
    assert.match(stream ?? "", /data: \[DONE\]\s*$/)
    assert.match(image ?? "", /"url":"http/)
    assert.match(videos ?? "", /"object":"list"/)
    yield* eventually(sh(lines[4] ?? ""), (text) => text.includes('"completed"'))
    assert.match(yield* sh("node dist/gateway.js ledger verify"), /hold/)
    assert.notMatch(stderr(), /Warning|Deprecat/)
    yield* signal("SIGTERM")
    yield* ended
  })
})
