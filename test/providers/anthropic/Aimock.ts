import { LLMock } from "@copilotkit/aimock"
import { Effect, type Scope } from "effect"
import * as Anthropic from "../../../src/providers/anthropic/Anthropic.ts"
import { answered, type Harness, type Host } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { has, layer, routeTo, secret, toldStops } from "./Hosts.ts"
import { errors, isError, stopReasons, understood } from "./Wire.ts"

/** Hands a request on and its answer back, cut where that is cut. */
const forwardTo =
  (url: () => string): Fake.Reply =>
  async (response, { bytes, headers, path }) => {
    const { "content-type": type = "", "x-api-key": key = "" } = headers
    const sent = { "content-type": type, "x-api-key": String(key) }
    const answer = await fetch(`${url()}${path}`, { method: "POST", headers: sent, body: new Uint8Array(bytes) })
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.flushHeaders()
    for await (const chunk of answer.body ?? []) response.write(chunk)
    response.end()
  }

/**
 * The Messages API in the words of an independent fake. It keeps no request as it came, so each goes past a door of
 * ours; it cannot wait and knows no pages or errors inside answers.
 */
const aimockHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const mock = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const started = new LLMock({ port: 0, strict: true, auth: { apiKeys: [secret] } })
      await started.start()
      return started
    }),
    (started) => Effect.promise(() => started.stop())
  )
  const door = yield* Fake.serving(forwardTo(() => mock.url))
  const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
    Effect.sync(() => mock.clearFixtures().addFixture({ match: { predicate: () => true }, ...fixture }))
  return {
    route: routeTo(door.url),
    understood: Effect.map(door.received, ({ body }) => understood(body)),
    answers: ({ content, finish, reasoning, toolCalls, usage }) => {
      const said = {
        finishReason: stopReasons[finish],
        ...(usage && { usage: { input_tokens: usage.prompt, output_tokens: usage.completion } }),
        ...(reasoning && { reasoning })
      }
      return next({
        response: toolCalls ? { ...said, toolCalls: [...toolCalls] } : { ...said, content: content ?? "" },
        chunkSize: 4
      })
    },
    meets: (weather) => {
      if (isError(weather)) {
        const { error, status } = errors[weather]
        return next({ response: { error, status, retryAfter: 7 } })
      }
      return weather === "garbage"
        ? next({ response: { content: "unseen" }, chaos: { malformedRate: 1 } })
        : next({
            response: { content: "never whole, whatever comes" },
            chunkSize: 4,
            latency: 20,
            truncateAfterChunks: 6
          })
    }
  }
})

export const aimock: Harness = {
  name: "anthropic on aimock",
  make: Anthropic.make,
  upstream: layer,
  host: aimockHost,
  holds: false,
  weathers: [...answered, "garbage", "cut stream"],
  has: { ...has, cached: false },
  toldStops,
  withholds: true
}
