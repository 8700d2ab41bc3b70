import { readFileSync } from "node:fs"
import path from "node:path"
import { Effect, Schema } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { assertCharged } from "../../harness/database/Money.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gateway, pixel } from "../SandboxChat.ts"
import { block, customerOf, exportsOf, impatientProxy, programOf, requestsOf, run, workspace } from "./Agents.ts"

const claude = programOf("claude")

const Outcome = Schema.parseJson(
  Schema.Struct({
    is_error: Schema.Boolean,
    result: Schema.String,
    num_turns: Schema.Number,
    total_cost_usd: Schema.Number,
    api_error_status: Schema.NullOr(Schema.Number)
  })
)

interface Setting {
  readonly account?: Parameters<typeof customerOf>[0]
  readonly proxied?: boolean
}

/** Claude Code as the page configures it, free to act in a folder of its own. */
const start = Effect.fnUntraced(function* ({ account: options, proxied = false }: Setting = {}) {
  const account = yield* customerOf(options)
  const keys = yield* ApiKeys
  const raise = Effect.orDie(keys.update(OrganizationScope.all, account.key, { rpm: 600 }))
  const url = proxied ? (yield* impatientProxy(account.url, raise)).url : account.url
  const cwd = yield* workspace({ "notes.txt": "The word is heron.\n", "pixel.png": Buffer.from(pixel, "base64") })
  const tools = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Edit,Write,Agent"]
  const ask = (prompt: string, model = "claude-opus-5") =>
    Effect.flatMap(
      run(claude ?? "", ["-p", prompt, "--model", model, "--output-format", "json", ...tools], cwd, {
        ...exportsOf(block("Claude Code", "sh", { ...account, url })),
        CLAUDE_CODE_MAX_RETRIES: "1"
      }),
      ({ stderr, stdout }) =>
        Effect.orDieWith(Schema.decodeUnknown(Outcome)(stdout), (error) => `${error.message}${stderr}`)
    )
  return { ...account, cwd, ask }
})

withLayer(gateway)("Claude Code", (it) => {
  const test = it.scoped.skipIf(claude === undefined)

  test("answers, and is charged what it says that it cost", function* () {
    const { ask, org } = yield* start()
    const { is_error, result, total_cost_usd } = yield* ask("say pong")
    assert.isFalse(is_error)
    assert.include(result, 'You wrote "say pong".')
    yield* assertCharged(org, [BigInt(Math.round(total_cost_usd * 1e9))])
  })

  test("reads a file and runs a command", function* () {
    const { ask, org } = yield* start()
    const { num_turns, result } = yield* ask("read the file notes.txt, then run `echo $((6 * 7))`")
    assert.strictEqual(num_turns, 3)
    assert.include(result, 'The result of Bash is "42"')
    assert.lengthOf(yield* requestsOf(org, 3), 3)
  })

  test("edits and writes files", function* () {
    const { ask, cwd } = yield* start()
    yield* ask("read the file notes.txt, then replace `heron` with `egret` in notes.txt, then write new.txt with `a b`")
    assert.strictEqual(readFileSync(path.join(cwd, "notes.txt"), "utf8"), "The word is egret.\n")
    assert.strictEqual(readFileSync(path.join(cwd, "new.txt"), "utf8"), "a b")
  })

  test("starts a sub-agent and has its answer", function* () {
    const { ask, org } = yield* start()
    const { result } = yield* ask("ask a sub-agent to read the file notes.txt")
    assert.match(result, /The result of Agent is .*The word is heron\./)
    assert.lengthOf(yield* requestsOf(org, 4), 4)
  })

  test("shows a picture", function* () {
    const { ask } = yield* start()
    assert.include((yield* ask("read the file pixel.png")).result, "image/png, 1 × 1, 70 bytes")
  })

  test("works on a model of another vendor", function* () {
    const { ask } = yield* start()
    assert.include((yield* ask("read the file notes.txt", "gpt-5.5")).result, "The word is heron.")
  })

  test("says once that the balance is too low", function* () {
    const { ask, org } = yield* start({ account: { nanoUsd: 0n } })
    const outcome = yield* ask("say pong")
    assert.deepStrictEqual([outcome.is_error, outcome.api_error_status], [true, 402])
    assert.include(outcome.result, "Insufficient credits")
    assert.lengthOf(yield* requestsOf(org, 1), 1)
  })

  test("waits when it is told to, and goes on", function* () {
    const { ask, org } = yield* start({ account: { rpm: 1 }, proxied: true })
    assert.include((yield* ask("run `echo $((6 * 7))`")).result, '"42"')
    const statuses = (yield* requestsOf(org, 3)).map(({ status }) => status)
    assert.deepStrictEqual([statuses[0], statuses[1], statuses.at(-1)], [200, 429, 200])
  })

  test("reports a stream that breaks, at no charge", function* () {
    const { ask, org } = yield* start()
    const { is_error } = yield* ask("[sandbox cut=3] say pong", "claude-sonnet-5")
    assert.isTrue(is_error)
    const requests = yield* requestsOf(org, 1)
    assert.strictEqual(requests[0]?.code, "stream_error")
    assert.isAtMost(requests.length, 5)
    yield* assertCharged(org, [])
  })

  test("does not notice that a route failed", function* () {
    const { ask, org } = yield* start()
    assert.include((yield* ask("[sandbox status=503 routes=1] say pong")).result, 'You wrote "say pong".')
    const [request, ...others] = yield* requestsOf(org, 1)
    assert.deepStrictEqual([request?.route, request?.attempts, others], ["claude-opus-5@sandbox-b", 2, []])
  })
})
