import { assert, describe, layer as withLayer } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, assertRefused, chat, type Refusal, refusals, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { cut, done, event, json, type Reply, type Step, sse, steps, text } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  chunk,
  completion,
  gateway,
  hidden,
  type Models,
  onFirst,
  onSecond,
  Upstreams,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"

const error = (over: object = {}) => ({
  error: { message: `hush ${hidden.firstKey}`, type: "hush_error", param: null, ...over }
})
const headers = { "x-request-id": "req-hush", "retry-after-hush": "1", server: "hush" }
const failing = (status: number, over: object = {}): Reply => json(status, error(over), headers)

/** Failures of the provider: another route is asked, and `alone` is what the client hears where there is none. */
const moving: ReadonlyArray<readonly [what: string, reply: Reply, alone: Refusal, status: number | "network"]> = [
  ...[302, 404, 405, 408, 409, 425, 500, 502, 503, 504, 529].map(
    (status) => [`a ${status}`, failing(status), refusals.upstream, status] as const
  ),
  ["a 429", failing(429), refusals.allFailed("first", 429), 429],
  ...[401, 402, 403].map((status) => [`a ${status}`, failing(status), refusals.upstreamAuth, status] as const),
  ["a spent quota", failing(429, { code: "insufficient_quota" }), refusals.upstreamAuth, 429],
  ["a page with 500", text(500, "text/html", "<html>hush</html>"), refusals.upstream, 500],
  ["a page with 400", text(400, "text/html", "<html>hush</html>"), refusals.upstream, 400],
  ["a page with 200", text(200, "text/html", "<html>hush</html>"), refusals.upstream, 200],
  ["an empty body", text(200, "application/json", ""), refusals.upstream, 200],
  ["an empty 500", text(500, "application/json", ""), refusals.upstream, 500],
  ["half a body", text(200, "application/json", '{"choices":[{"mess'), refusals.upstream, 200],
  ["another protocol", json(200, { hush: true }), refusals.upstream, 200],
  ["no choices", json(200, { ...completion("hush"), choices: [] }), refusals.upstream, 200],
  ["an error in a 200", json(200, error()), refusals.upstream, 200],
  ["an error with its status in a 200", json(200, error({ code: 503 })), refusals.upstream, 503],
  [
    "a broken connection",
    (response) => void response.socket?.destroy(),
    refusals.allFailed("first", "network"),
    "network"
  ]
]

/** Failures that only a stream has, all of them before its first delta. */
const movingStreams: typeof moving = [
  ["a stream of nothing", sse(), refusals.upstream, 200],
  ["a stream of its end alone", sse(done), refusals.upstream, 200],
  ["a stream that begins with an error", sse(event(error()), done), refusals.upstream, 200],
  ["a stream of garbage", sse("data: {hush\n\n"), refusals.upstream, 200],
  ["a stream cut before its first delta", steps({}, ": hush\n\n", cut), refusals.upstream, 200]
]

const moderated = failing(400, { code: "content_policy_violation" })

/** Faults of the request: nobody else is asked. */
const final: ReadonlyArray<readonly [what: string, reply: Reply, refusal: Refusal]> = [
  ["a 400", failing(400), refusals.rejected],
  ["a 400 that names a field", failing(400, { param: "hush" }), refusals.rejected],
  ["a 413", failing(413), refusals.rejected],
  ["a 422", failing(422), refusals.rejected],
  ["too long a context", failing(400, { code: "context_length_exceeded" }), refusals.rejected],
  ["moderation", moderated, refusals.moderated],
  ["moderation by another word", failing(400, { code: "content_filter" }), refusals.moderated],
  ["moderation in a 200", json(200, error({ code: "content_policy_violation" })), refusals.moderated],
  [
    "an image that cannot be read",
    failing(400, { code: "invalid_image_url" }),
    { ...refusals.rejected, message: "Failed to process the reference image.", param: "messages" }
  ]
]

const slug = (what: string) => what.replaceAll(/\W+/g, "-")
/** One model a row and a way of asking, so that no row meets a circuit that another opened. */
const ids = [...moving, ...movingStreams, ...final].flatMap(([what]) => [`json-${slug(what)}`, `stream-${slug(what)}`])
const models: Models = {
  ...Object.fromEntries(ids.map((id) => [`${id}-alone`, {}])),
  ...Object.fromEntries(ids.map((id) => [`${id}-pair`, { routes: [onFirst, onSecond] }])),
  weak: {},
  shut: {},
  breaking: { routes: [onFirst, onSecond] },
  "weak-pair": { routes: [onFirst, onSecond] },
  refused: { routes: [{ provider: "refusing", model: "x" }] },
  "refused-pair": { routes: [{ provider: "refusing", model: "x" }, onSecond] },
  narrow: {
    capabilities: ["tools", "response_format"],
    routes: [onFirst, { ...onSecond, capabilities: ["response_format"] }]
  }
}

const assertSecretive = ({ headers: told, text: said }: Answer) => {
  const all = `${said}\n${[...told].join("\n")}`
  for (const secret of ["hush", hidden.model, hidden.firstKey, hidden.secondKey]) assert.notInclude(all, secret)
}

/** Answers a request through the gateway, with what each provider was asked and what the customer paid. */
const asking = Effect.fnUntraced(function* (body: object, replies: { first?: Reply; second?: Reply } = {}) {
  const { first, second } = yield* Upstreams
  const { spent, ...customer } = yield* Served.customer()
  const before = [first.calls.length, second.calls.length] as const
  if (replies.first !== undefined) yield* first.script(replies.first)
  if (replies.second !== undefined) yield* second.script(replies.second)
  const answer = yield* chat(customer, body)
  assertSecretive(answer)
  const asked = [first.calls.length - before[0], second.calls.length - before[1]]
  return { answer, asked, spent: yield* spent }
})

const assertServed = (answer: Answer, model: string) => {
  assert.strictEqual(answer.status, 200, answer.text)
  const [start] = answer.text.split("\n\n")
  const body: unknown = JSON.parse((start ?? "").replace(/^data: /, ""))
  assert.deepInclude(body, { model })
  assert.match(answer.text, /"id":"chatcmpl-[0-9a-f]{32}"/)
  assert.include(answer.text, "fine")
}

const served = gateway(models)

withLayer(served, { excludeTestServices: true })("what providers answer", (it) => {
  for (const stream of [false, true]) {
    const mode = stream ? "stream" : "json"
    describe(mode, () => {
      const failures = stream ? [...moving, ...movingStreams] : moving

      it.effect.each(failures)("%s of the only route", ([what, reply, alone]) =>
        Effect.gen(function* () {
          const model = `${mode}-${slug(what)}-alone`
          const { answer, asked, spent } = yield* asking({ ...talk(model), stream }, { first: reply })
          assertRefused(answer, alone)
          assert.deepStrictEqual({ asked, spent }, { asked: [1, 0], spent: 0n })
        })
      )

      it.effect.each(failures)("%s moves on, unseen, and the last failure is told of", ([what, reply, , status]) =>
        Effect.gen(function* () {
          const model = `${mode}-${slug(what)}-pair`
          const body = { ...talk(model), stream }
          const moved = yield* asking(body, { first: reply, second: answers() })
          assertServed(moved.answer, model)
          assert.deepStrictEqual([moved.asked, moved.spent], [[1, 1], usualCharge])

          // The first may be closed by now: the provider's account was at fault.
          const { first } = yield* Upstreams
          const open = first.calls.length
          const failed = yield* asking(body, { second: reply })
          assertRefused(failed.answer, refusals.allFailed("second", status))
          assert.strictEqual(failed.spent, 0n)
          assert.isAtMost(first.calls.length - open, 1)
        })
      )

      it.effect.each(final)("%s is the request's own fault", ([what, reply, refusal]) =>
        Effect.gen(function* () {
          for (const kind of ["alone", "pair"]) {
            const model = `${mode}-${slug(what)}-${kind}`
            const { answer, asked, spent } = yield* asking({ ...talk(model), stream }, { first: reply })
            assertRefused(answer, refusal)
            assert.deepStrictEqual({ asked, spent }, { asked: [1, 0], spent: 0n })
          }
        })
      )

      it.effect("a refused connection", () =>
        Effect.gen(function* () {
          const alone = yield* asking({ ...talk("refused"), stream })
          assertRefused(alone.answer, refusals.allFailed("refusing", "network"))
          const moved = yield* asking({ ...talk("refused-pair"), stream }, { second: answers() })
          assertServed(moved.answer, "refused-pair")
          const both = yield* asking({ ...talk("refused-pair"), stream }, { second: failing(500) })
          assertRefused(both.answer, refusals.allFailed("second", 500))
          assert.deepStrictEqual([alone.spent, moved.spent, both.spent], [0n, usualCharge, 0n])
        })
      )

      it.effect("a route that cannot honour the request is no route for it", () =>
        Effect.gen(function* () {
          const body = { ...talk("narrow"), stream }
          const tools = { tools: [{ type: "function", function: { name: "f" } }] }
          const alone = yield* asking({ ...body, ...tools }, { first: failing(500) })
          assertRefused(alone.answer, refusals.upstream)
          assert.deepStrictEqual(alone.asked, [1, 0])
          const moved = yield* asking(body, { first: failing(500), second: answers() })
          assertServed(moved.answer, "narrow")
          assert.deepStrictEqual(moved.asked, [1, 1])
        })
      )
    })
  }

  const breaks: ReadonlyArray<readonly [what: string, ...steps: ReadonlyArray<Step>]> = [
    ["an error", event(error()), done],
    ["an error that names a fault of the request", event(error({ code: "content_policy_violation" }))],
    ["garbage", "data: {hush\n\n"],
    ["the connection's end", cut],
    ["its own end, without a finish"]
  ]

  it.effect.each(breaks)(
    "%s after the first delta ends the stream with an error, and no other route is asked",
    ([, ...rest]) =>
      Effect.gen(function* () {
        const reply = sse(chunk({ content: "Servus" }), ...rest)
        const { answer, asked, spent } = yield* asking({ ...talk("breaking"), stream: true }, { first: reply })
        assert.strictEqual(answer.status, 200)
        const events = answer.text.split("\n\n").filter((event) => event !== "")
        const { code, message, type } = refusals.upstream
        assert.deepStrictEqual<unknown>(JSON.parse(events.at(-1)?.replace("data: ", "") ?? ""), {
          error: { message, type, param: null, code }
        })
        assert.include(events.at(-2) ?? "", '"content":"Servus"')
        assert.deepStrictEqual({ asked, spent }, { asked: [1, 0], spent: 0n })
      })
  )

  it.effect("five failures in a row close a route: then nobody is asked", () =>
    Effect.gen(function* () {
      for (let failures = 0; failures < 5; failures++) {
        assertRefused((yield* asking(talk("weak"), { first: failing(500) })).answer, refusals.upstream)
      }
      const { answer, asked } = yield* asking(talk("weak"))
      assertRefused(answer, refusals.noProvider)
      assert.deepStrictEqual(asked, [0, 0])
    })
  )

  it.effect("a fault of the provider's account closes its route at once", () =>
    Effect.gen(function* () {
      assertRefused((yield* asking(talk("shut"), { first: failing(401) })).answer, refusals.upstreamAuth)
      const { answer, asked } = yield* asking(talk("shut"))
      assertRefused(answer, refusals.noProvider)
      assert.deepStrictEqual(asked, [0, 0])
    })
  )

  it.effect("faults of requests close no route, and a closed route is passed over", () =>
    Effect.gen(function* () {
      for (let refusal = 0; refusal < 7; refusal++) {
        const reply = refusal % 2 === 0 ? failing(422) : moderated
        assert.deepStrictEqual((yield* asking(talk("weak-pair"), { first: reply })).asked, [1, 0])
      }
      yield* asking(talk("weak-pair"), { first: failing(403), second: answers() })
      const passed = yield* asking(talk("weak-pair"), { second: answers() })
      assertServed(passed.answer, "weak-pair")
      assert.deepStrictEqual(passed.asked, [0, 1])
      const failed = yield* asking(talk("weak-pair"), { second: failing(500) })
      assertRefused(failed.answer, refusals.allFailed("second", 500))
      assert.deepStrictEqual(failed.asked, [0, 1])
    })
  )
})
