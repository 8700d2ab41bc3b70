import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Predicate, Redacted } from "effect"
import type { ChatEvent } from "../../src/domain/Chat.ts"
import type { Route } from "../../src/domain/Model.ts"
import { Upstream } from "../../src/providers/client/Upstream.ts"
import { Attempts } from "../../src/services/routing/Attempts.ts"
import type { Provider } from "../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../src/services/routing/ProviderRouter.ts"
import { Providers } from "../../src/services/routing/Providers.ts"
import { joined } from "../contracts/ChatHarness.ts"
import { model, request, route } from "../fakes/ProviderFake.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { fences, page, root } from "./Markdown.ts"

/** The example as a file of its own, beside which the sources and packages are found. */
const written = Effect.acquireRelease(
  Effect.sync(() => {
    const [example, ...more] = fences(page("docs/providers.md"), "ts")
    assert.lengthOf(more, 0)
    const directory = mkdtempSync(path.join(tmpdir(), "gateway-docs-"))
    const code = (example ?? "")
      .replaceAll(/from "\.\.\/\.\.\/(.+)"/g, `from "${root}/src/$1"`)
      .replaceAll(/from "\.\.\/(.+)"/g, `from "${root}/src/providers/$1"`)
    symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"))
    writeFileSync(path.join(directory, "package.json"), '{"type": "module"}')
    writeFileSync(path.join(directory, "Plain.ts"), code)
    const { compilerOptions } = JSON.parse(readFileSync(path.join(root, "tsconfig.json"), "utf8"))
    const options = { ...compilerOptions, typeRoots: [path.join(root, "node_modules/@types")] }
    writeFileSync(
      path.join(directory, "tsconfig.json"),
      JSON.stringify({ compilerOptions: options, include: ["Plain.ts"] })
    )
    return directory
  }),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

const compiled = (directory: string) =>
  Effect.async<string>((resume) => {
    execFile(path.join(root, "node_modules/.bin/tsc"), ["-p", directory], (error, stdout) =>
      resume(Effect.succeed(error === null ? "" : `${stdout}${error.message}`))
    )
  })

const isMaker = (value: unknown): value is Effect.Effect<Provider, never, Upstream> => Effect.isEffect(value)

const adapter = (directory: string) =>
  Effect.flatMap(
    Effect.promise((): Promise<unknown> => import(pathToFileURL(path.join(directory, "Plain.ts")).href)),
    (module) =>
      Predicate.isRecord(module) && isMaker(module.make) ? module.make : Effect.dieMessage("the example makes nothing")
  )

const upstream = Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 5 })

const over = (directory: string) =>
  ProviderRouter.layer().pipe(
    Layer.provide(
      Layer.effect(
        Providers,
        Effect.map(adapter(directory), (provider) => new Map([[provider.adapter, provider]]))
      )
    ),
    Layer.provide(upstream)
  )

const plainRoute = (name: string, baseUrl: string): Route =>
  route(name, {
    provider: { name, adapter: "plain", baseUrl, credential: Redacted.make("secret"), headers: {} }
  })

const said = { text: "Grüezi.", end: "stop", spent: { in: 4, out: 2 } }
const usage = { prompt: 4, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
const expected = { content: "Grüezi.", reasoning: undefined, toolCalls: [], finish: "stop", usage } as const
const busy = Fake.json(503, { error: { message: "busy" } })

describe("the adapter of docs/providers.md", () => {
  it.scopedLive("compiles against the sources", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* compiled(yield* written), "")
    })
  )

  it.scopedLive("answers behind the router, after a route that failed", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make
      const host = model(plainRoute("a", fake.url), plainRoute("b", fake.url))
      yield* Effect.gen(function* () {
        const router = yield* ProviderRouter
        const attempts = new Attempts()
        yield* fake.script(busy, Fake.json(200, said))
        const { answer, route } = yield* router.complete(host, request({ maxTokens: 9 }), attempts)
        assert.deepStrictEqual(answer, expected)
        assert.strictEqual(route.provider.name, "b")
        assert.deepStrictEqual(
          attempts.list.map(({ outcome }) => outcome),
          ["retry", "ok"]
        )
        const { body, headers, path: asked } = yield* fake.received
        assert.deepStrictEqual([asked, headers["x-key"]], ["/generate", "secret"])
        assert.deepStrictEqual(body, {
          model: "theirs",
          turns: [{ who: "user", text: "hi" }],
          limit: 9,
          stop: [],
          stream: false
        })
      }).pipe(Effect.provide(over(yield* written)))
    })
  )

  it.scopedLive("streams behind the router, and says when a stream was cut", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make
      const host = model(plainRoute("a", fake.url), plainRoute("b", fake.url))
      yield* Effect.gen(function* () {
        const router = yield* ProviderRouter
        const hear = Effect.gen(function* () {
          const { first, pull } = yield* router.stream(host, request({ stream: true }), new Attempts())
          const events: Array<ChatEvent> = [...first]
          const end = yield* Effect.flip(Effect.forever(Effect.map(pull, (more) => events.push(...more))))
          return { events, end }
        }).pipe(Effect.scoped)

        const start = Fake.event({ text: "Grüe" })
        yield* fake.script(busy, Fake.sse(start, Fake.event({ text: "zi." }), Fake.event({ ...said, text: undefined })))
        const whole = yield* hear
        assert.isTrue(Option.isNone(whole.end))
        assert.deepStrictEqual(joined(whole.events), expected)

        yield* fake.script(Fake.sse(start))
        const cut = yield* hear
        assert.deepStrictEqual(
          Option.map(cut.end, ({ _tag }) => _tag),
          Option.some("UpstreamFailed")
        )
      }).pipe(Effect.provide(over(yield* written)))
    })
  )
})
