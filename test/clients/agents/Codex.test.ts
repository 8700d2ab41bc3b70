import { readFileSync } from "node:fs"
import path from "node:path"
import { Effect, Struct } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { assertCharged } from "../../harness/database/Money.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gateway, pixel } from "../SandboxChat.ts"
import { block, customerOf, impatientProxy, programOf, requestsOf, run, workspace } from "./Agents.ts"

const codex = programOf("codex")

interface Setting {
  readonly account?: Parameters<typeof customerOf>[0]
  readonly proxied?: boolean
}

/** Codex as the page configures it, free to act in a folder of its own. */
const start = Effect.fnUntraced(function* ({ account: options, proxied = false }: Setting = {}) {
  const account = yield* customerOf(options)
  const keys = yield* ApiKeys
  const raise = Effect.orDie(keys.update(OrganizationScope.all, account.key, { rpm: 600 }))
  const url = proxied ? (yield* impatientProxy(account.url, raise)).url : account.url
  const cwd = yield* workspace({
    ".codex/config.toml": block("Codex", "toml", { ...account, url }),
    "notes.txt": "The word is heron.\n",
    "pixel.png": Buffer.from(pixel, "base64")
  })
  const ask = (...args: ReadonlyArray<string>) =>
    run(
      codex ?? "",
      ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", ...args],
      cwd,
      { GATEWAY_KEY: account.secret }
    )
  return { ...account, cwd, ask }
})

const spentOnAll = (org: string) =>
  Effect.map(requestsOf(org, 1), (requests) => requests.map(({ charge }) => charge).filter((charge) => charge > 0n))

withLayer(gateway)("Codex", (it) => {
  const test = it.scoped.skipIf(codex === undefined)

  test("answers, and every token that it counts is charged", function* () {
    const { ask, org, openai } = yield* start()
    const { stdout } = yield* ask("say pong")
    assert.include(stdout, 'You wrote \\"say pong\\".')
    const [, input = "", output = ""] = /"input_tokens":(\d+).*"output_tokens":(\d+)/.exec(stdout) ?? []
    const { pricing } = JSON.parse(JSON.stringify(yield* Effect.promise(() => openai.models.retrieve("gpt-5.5"))))
    const cost = Number(input) * pricing.prompt_per_1m_usd + Number(output) * pricing.completion_per_1m_usd
    yield* assertCharged(org, [BigInt(Math.round(cost * 1000))])
  })

  test("reads a file and runs a command", function* () {
    const { ask } = yield* start()
    const { stdout } = yield* ask("read the file notes.txt, then run `echo $((6 * 7))`")
    assert.include(stdout, '"aggregated_output":"The word is heron.\\n","exit_code":0')
    assert.include(stdout, '"aggregated_output":"42\\n","exit_code":0')
    assert.match(stdout, /"agent_message","text":"[^\n]*Output: 42/)
  })

  test("applies patches with its freeform tool", function* () {
    const { ask, cwd } = yield* start()
    const { stdout } = yield* ask(
      "apply a patch that adds new.txt with `a b`, then replace `The word is heron.` with `No.` in notes.txt"
    )
    assert.lengthOf(stdout.match(/"file_change".*"status":"completed"/g) ?? [], 2, stdout)
    const read = (name: string) => readFileSync(path.join(cwd, name), "utf8")
    assert.deepStrictEqual([read("new.txt"), read("notes.txt")], ["a b\n", "No.\n"])
  })

  test("starts a sub-agent and waits for it, on a model that it does not know", function* () {
    const { ask, org } = yield* start()
    const { stdout } = yield* ask("-m", "claude-opus-5", "ask a sub-agent to read the file notes.txt")
    assert.match(stdout, /"tool":"wait".*"status":"completed","message":"[^\n]*The word is heron\./)
    assert.lengthOf(yield* requestsOf(org, 5), 5)
  })

  test("shows a picture", function* () {
    const { ask } = yield* start()
    const { stdout } = yield* ask("-i", "pixel.png", "--", "what is it?")
    assert.include(stdout, "image/png, 1 × 1, 70 bytes")
  })

  test("says that the balance is too low", function* () {
    const { ask, org } = yield* start({ account: { nanoUsd: 0n } })
    const { code, stdout } = yield* ask("say pong")
    assert.strictEqual(code, 1)
    assert.match(stdout, /"turn.failed".*Insufficient credits/)
    const requests = yield* requestsOf(org, 2)
    assert.isAtMost(requests.length, 6)
    assert.isTrue(requests.every(({ status }) => status === 402))
  })

  test("waits when it is told to, and goes on", function* () {
    const { ask, org } = yield* start({ account: { rpm: 1 }, proxied: true })
    const { stdout } = yield* ask("run `echo $((6 * 7))`")
    assert.include(stdout, "Output: 42")
    const statuses = (yield* requestsOf(org, 3)).map(({ status }) => status)
    assert.deepStrictEqual([statuses[0], statuses[1], statuses.at(-1)], [200, 429, 200])
  })

  test("reports a stream that breaks each time, at no charge", function* () {
    const { ask, org } = yield* start()
    const { stdout } = yield* ask("-c", "model_providers.gateway.stream_max_retries=1", "[sandbox cut=3] say pong")
    assert.match(stdout, /"turn.failed".*The upstream provider returned an error/, stdout)
    assert.deepStrictEqual((yield* requestsOf(org, 2)).map(Struct.get("code")), ["stream_error", "stream_error"])
    yield* assertCharged(org, [])
  })

  test("does not notice that a route failed", function* () {
    const { ask, org } = yield* start()
    const { stdout } = yield* ask("[sandbox status=503 routes=1] say pong")
    assert.include(stdout, 'You wrote \\"say pong\\".')
    const [request, ...others] = yield* requestsOf(org, 1)
    assert.deepStrictEqual([request?.route, request?.attempts, others], ["gpt-5.5@sandbox-b", 2, []])
    yield* assertCharged(org, yield* spentOnAll(org))
  })
})
