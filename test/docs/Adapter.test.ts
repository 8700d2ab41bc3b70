import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { Effect, Layer, Option, Predicate } from "effect"
import type { ChatEvent } from "../../src/domain/Chat.ts"
import { AttemptHistory } from "../../src/services/routing/AttemptHistory.ts"
import { Providers } from "../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../src/services/routing/ProviderRouter.ts"
import { chatAdapterContract } from "../contracts/ChatAdapter.ts"
import { joined } from "../contracts/ChatHarness.ts"
import { type ChatWire, harnesses, layer, routeTo, secret } from "../contracts/ChatHosts.ts"
import { oddAnswersContract } from "../contracts/OddAnswers.ts"
import { acme, model, request } from "../fakes/ProviderFake.ts"
import { afterAll, assert, describe, it, liveOver } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { fences, page, root } from "./Markdown.ts"

/** The examples by the paths in their first lines. */
const files = new Map(
  fences(page("docs/providers.md"), "ts").map((code) => [/^\/\/ (\S+)\n/.exec(code)?.[1] ?? "unnamed", code])
)

/** The examples in a directory of their own, beside which the sources and packages are found. */
const directory = mkdtempSync(path.join(tmpdir(), "gateway-docs-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"))
writeFileSync(path.join(directory, "package.json"), '{"type": "module"}')
for (const [file, code] of files) {
  const located = code.replaceAll(/from "(\..+)"/g, (_, target: string) => {
    const from = path.join(path.dirname(file), target)
    return `from "${path.join(files.has(from) ? directory : root, from)}"`
  })
  mkdirSync(path.join(directory, path.dirname(file)), { recursive: true })
  writeFileSync(path.join(directory, file), located)
}

const compiled = Effect.async<string>((resume) => {
  const { compilerOptions } = JSON.parse(readFileSync(path.join(root, "tsconfig.json"), "utf8"))
  const options = { ...compilerOptions, typeRoots: [path.join(root, "node_modules/@types")] }
  const project = { compilerOptions: options, include: [...files.keys()] }
  writeFileSync(path.join(directory, "tsconfig.json"), JSON.stringify(project))
  execFile(path.join(root, "node_modules/.bin/tsc"), ["-p", directory], (error, stdout) =>
    resume(Effect.succeed(error === null ? "" : `${stdout}${error.message}`))
  )
})

const isWire = (value: unknown): value is ChatWire => Predicate.isRecord(value) && Effect.isEffect(value["make"])
const example: unknown = await import(pathToFileURL(path.join(directory, "test/providers/plain/Wire.ts")).href)
const plain = Predicate.isRecord(example) && isWire(example["plain"]) ? example["plain"] : undefined
if (plain === undefined) throw new Error("docs/providers.md has no wire of the example")

harnesses(plain).forEach(chatAdapterContract)
oddAnswersContract(plain)

const router = ProviderRouter.layer().pipe(
  Layer.provide(
    Layer.effect(
      Providers,
      Effect.map(plain.make, (provider) => new Map([[provider.adapter, provider]]))
    )
  ),
  Layer.provide(layer)
)

const hostsAt = (url: string) => {
  const route = routeTo(plain, url)
  const named = (name: string) => ({ ...route, id: `plain@${name}`, provider: { ...route.provider, name } })
  return model(named("a"), named("b"))
}

const usage = { prompt: 4, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
const answer = { content: "Grüezi.", finish: "stop", usage } as const
const expected = { ...answer, reasoning: undefined, toolCalls: [] }
const busy = Fake.json(503, { error: { message: "busy" } })
const { body, end, output } = plain.encode(answer)

describe("the adapter of docs/providers.md", () => {
  it.live("compiles against the sources", () =>
    Effect.map(compiled, (complaints) => assert.strictEqual(complaints, ""))
  )

  liveOver(router)("answers behind the router, after a route that failed", function* () {
    const fake = yield* Fake.make
    const attempts = new AttemptHistory(acme)
    yield* fake.script(busy, Fake.json(200, body))
    const asked = request({ maxTokens: 9 })
    const { answer: got, route } = yield* (yield* ProviderRouter).complete(hostsAt(fake.url), asked, attempts)
    assert.deepStrictEqual(got, expected)
    assert.strictEqual(route.provider.name, "b")
    assert.deepStrictEqual(
      attempts.list.map(({ outcome }) => outcome),
      ["retry", "ok"]
    )
    const { body: sent, headers, path: asking } = yield* fake.received
    assert.deepStrictEqual([asking, headers["x-key"]], ["/generate", secret])
    const turns = [{ who: "user", text: "hi" }]
    assert.deepStrictEqual(sent, { model: "plain-1", turns, limit: 9, stop: [], stream: false })
  })

  liveOver(router)("streams behind the router, and says when a stream was cut", function* () {
    const fake = yield* Fake.make
    const { stream } = yield* ProviderRouter
    const hear = Effect.gen(function* () {
      const { first, pull } = yield* stream(hostsAt(fake.url), request({ stream: true }), new AttemptHistory(acme))
      const events: Array<ChatEvent> = [...first]
      const ended = yield* Effect.flip(Effect.forever(Effect.map(pull, (more) => events.push(...more))))
      return { events, ended }
    }).pipe(Effect.scoped)

    yield* fake.script(busy, Fake.sse(...output, ...end), Fake.sse(...output))
    const whole = yield* hear
    assert.isTrue(Option.isNone(whole.ended))
    assert.deepStrictEqual(joined(whole.events), expected)
    const { ended } = yield* hear
    assert.deepStrictEqual(
      Option.map(ended, ({ _tag }) => _tag),
      Option.some("UpstreamFailed")
    )
  })
})
