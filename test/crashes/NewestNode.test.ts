import { execFile, spawnSync } from "node:child_process"
import { homedir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { page } from "../docs/Markdown.ts"
import { eventually } from "../harness/database/Money.ts"
import * as GatewayProcess from "../harness/gateway/GatewayProcess.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { checkOutInto } from "./Checkout.ts"

const run = promisify(execFile)
const [, named = ""] = /Node\.js (\d+) /.exec(page("README.md").text) ?? []
const cache = process.env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache")
const installed = path.join(cache, "generation-gateway-node", named)

const isNamed = (directory: string): boolean => {
  const { stdout } = spawnSync(path.join(directory, "node"), ["--version"], { encoding: "utf8" })
  return (stdout ?? "").startsWith(`v${named}.`)
}

/** Where the Node that the README names is: this one, or one from the user's cache, which CI fills. */
const locate = (): string | undefined => {
  const directories = [path.dirname(process.execPath), path.join(installed, "node_modules/node/bin")]
  const found = directories.find(isNamed)
  if (found !== undefined || process.env["CI"] !== "true") return found
  const install = ["install", "--prefix", installed, "--no-audit", "--no-fund", "--loglevel", "error", `node@${named}`]
  spawnSync("npm", install, { stdio: ["ignore", "ignore", "inherit"], timeout: 180_000 })
  return directories.find(isNamed)
}

const directory = locate()
const isRunnable = directory !== undefined && spawnSync("curl", ["--version"]).status === 0
if (!isRunnable) console.warn(`skipped: it needs curl, and Node.js ${named}, which CI=true installs into ${installed}`)

describe("the Node that the README names", () => {
  it.scopedLive.skipIf(!isRunnable)(
    "builds, starts, and serves every line that is printed",
    function* () {
      const cwd = yield* temporaryDirectory
      yield* checkOutInto(cwd)
      const env = { PATH: `${directory}:${process.env["PATH"]}`, DATABASE_URL: "" }
      const sh = (line: string) =>
        Effect.map(
          Effect.promise(() => run("sh", ["-c", line], { cwd, env: { ...env, HOME: cwd } })),
          ({ stdout }) => stdout
        )
      const { ended, signal, stdout } = yield* GatewayProcess.start({
        env: { ...env, PORT: "0" },
        command: { line: ["npm", "start"], cwd }
      })
      const lines = Array.from(stdout().matchAll(/^ {2}(curl .+)$/gm), ([, line = ""]) => `${line} -sS --fail`)
      const [chat, stream, image, , videos] = yield* Effect.forEach(lines, sh)
      assert.match(chat ?? "", /"object":"chat.completion"/)
      assert.match(stream ?? "", /data: \[DONE\]\s*$/)
      assert.match(image ?? "", /"url":"http/)
      assert.match(videos ?? "", /"object":"list"/)
      yield* eventually(sh(lines[4] ?? ""), (text) => text.includes('"completed"'))
      assert.match(yield* sh("node dist/gateway.js ledger verify"), /hold/)
      yield* signal("SIGTERM")
      yield* ended
    },
    120_000
  )
})
