import { Effect, Predicate, type Scope } from "effect"
import { makeMock } from "../../contracts/ChatHosts.ts"
import type { Host } from "../../contracts/ImageHarness.ts"
import { base64, secret } from "../../contracts/MediaHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { errors, isError, routeTo } from "./Hosts.ts"

/** The same hosts with an independent fake. It ignores files and has no HTML pages or errors inside answers. */
export const aimockHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const mock = yield* makeMock(secret)
  const gallery = yield* Fake.make
  let looked = 0
  const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
    Effect.sync(() =>
      mock.clearFixtures().addFixture({ match: { endpoint: "image", predicate: () => true }, ...fixture })
    )
  const draws = (...images: ReadonlyArray<{ b64Json?: string; url?: string; revisedPrompt?: string }>) =>
    next({ response: { images: [...images] } })
  return {
    route: routeTo(`${mock.url}/v1`),
    answer: ({ bytes, revisedPrompt, where }) => {
      const words = revisedPrompt === undefined ? {} : { revisedPrompt }
      if (where !== "elsewhere") return draws({ b64Json: base64(bytes), ...words })
      const url = `${gallery.url}/1`
      return Effect.zipRight(draws({ url, ...words }), gallery.script(Fake.steps({ type: "image/png" }, bytes)))
    },
    fail: (fault) => {
      if (isError(fault)) {
        const { error, status } = errors[fault]
        return next({ response: { error, status, retryAfter: 7 } })
      }
      if (fault === "garbage") return next({ response: { images: [] }, chaos: { malformedRate: 1 } })
      return fault === "no picture" ? draws() : draws({ b64Json: "no base64!" })
    },
    received: Effect.sync(() => {
      const body = mock.getRequests()[looked++]?.body
      const [message] = Array.isArray(body?.messages) ? body.messages : []
      return {
        model: String(body?.model),
        prompt: Predicate.isRecord(message) ? String(message.content) : "",
        references: undefined,
        credential: undefined
      }
    }),
    fetched: Effect.map(gallery.received, ({ headers }) => ({ credential: headers.authorization }))
  }
})
