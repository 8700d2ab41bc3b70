import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"
import path from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { ask, get } from "../harness/client/ChatClient.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"
import { json } from "../harness/upstream/FakeUpstream.ts"
import { checkOutInto } from "./Checkout.ts"

const run = promisify(execFile)

const withoutUsage = json(200, {
  choices: [{ index: 0, message: { role: "assistant", content: "Hello there" }, finish_reason: "stop" }]
})

deploymentTest(
  "a build and another start leave a running gateway its files",
  function* ({ directory, gateway, upstream }) {
    const build = (commit: string) =>
      Effect.promise(async () => {
        await run(process.execPath, ["build.mjs"], { cwd: directory, env: { ...process.env, GATEWAY_COMMIT: commit } })
        return await readFile(path.join(directory, "dist/gateway.js"), "utf8")
      })
    yield* checkOutInto(directory)
    const first = yield* build("first")
    const line = [process.execPath, "dist/gateway.js", "serve", "--workers", "2"] as const
    const { stderr, stdout, url } = yield* gateway({ command: { line, cwd: directory } })
    assert.notStrictEqual(yield* build("second"), first)
    yield* gateway({ command: { line: ["bin/gateway", "serve"], cwd: directory } })
    const { org, secret } = yield* openAccount({})
    // Tokens are counted where the provider does not tell them.
    yield* upstream.script(withoutUsage)
    assert.strictEqual((yield* ask({ url, secret })).status, 200)
    const [row] = yield* Effect.flatMap(RequestLog, (log) => log.list(OrganizationScope.all, { org, limit: 1 }))
    assert.isTrue((row?.charge ?? 0n) > 0n)
    const console = yield* get(`${url}/console`)
    const files = console.text.match(/console-\w+\.(?:js|css)/g) ?? []
    assert.lengthOf(files, 2)
    for (const page of ["/", "/docs", ...files.map((file) => `/console/${file}`)]) {
      assert.strictEqual((yield* get(`${url}${page}`)).status, 200, page)
    }
    assert.notInclude(stdout() + stderr(), "ERR_MODULE_NOT_FOUND")
  }
)
