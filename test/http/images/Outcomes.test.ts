import { assert, layer as withLayer } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, assertRefused, type Refusal, refusals } from "../../harness/client/HttpCalls.ts"
import { imageOf } from "../../harness/client/ImageClient.ts"
import { assertLinked } from "../../harness/client/MediaLinks.ts"
import { draw, gateway, type ImageModels, onFirst, onSecond, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { cut, json, type Reply, steps, text } from "../../harness/upstream/FakeUpstream.ts"
import { asked, gif, painted, painting, paints } from "../../harness/upstream/ImageReplies.ts"
import { hidden, Upstreams } from "../../harness/upstream/Upstreams.ts"

const image = gif.toString("base64")

const error = (over: object = {}) => ({
  error: { message: `hush ${hidden.firstKey}`, type: "hush_error", param: null, ...over }
})
const failing = (status: number, over: object = {}): Reply =>
  json(status, error(over), { "x-request-id": "req-hush", server: "hush" })
const linking = (url: string): Reply => json(200, { created: 1, data: [{ url }] })

/** Failures of the provider: another route is asked, and `alone` is what the client hears where there is none. */
const moving: ReadonlyArray<readonly [what: string, reply: Reply, alone: Refusal, status: number | "network"]> = [
  ...[404, 408, 409, 500, 503].map((status) => [`a ${status}`, failing(status), refusals.upstream, status] as const),
  ["a 429", failing(429), refusals.allFailed("first", 429), 429],
  ...[401, 402, 403].map((status) => [`a ${status}`, failing(status), refusals.upstreamAuth, status] as const),
  ["a hard limit", failing(400, { code: "billing_hard_limit_reached" }), refusals.upstreamAuth, 400],
  ["a page with 200", text(200, "text/html", "<html>hush</html>"), refusals.upstream, 200],
  ["a page with 400", text(400, "text/html", "<html>hush</html>"), refusals.upstream, 400],
  ["half a body", steps({ type: "application/json" }, '{"data":[{"b64_json":"iVBO', cut), refusals.upstream, 200],
  ["an error in a 200", json(200, error()), refusals.upstream, 200],
  ["no picture", json(200, { ...painted(), data: [] }), refusals.upstream, 200],
  ["another protocol", json(200, { hush: true }), refusals.upstream, 200],
  ["a page for a picture", paints(Buffer.from("<html>hush</html>")), refusals.upstream, 200],
  ["a drawing in a text", paints(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')), refusals.upstream, 200],
  ["garbage for a picture", paints(Buffer.alloc(4_096, 7)), refusals.upstream, 200],
  ["half a picture", paints(painting.subarray(0, painting.length - 12)), refusals.upstream, 200],
  ["a picture that is no base64", json(200, { data: [{ b64_json: "not base64!" }] }), refusals.upstream, 200],
  ["a link into this network", linking("http://169.254.169.254/latest/hush"), refusals.upstream, 200],
  ["a link to another port here", linking("http://127.0.0.1:1/hush"), refusals.upstream, 200],
  ["a link that is none", linking("file:///etc/passwd"), refusals.upstream, 200],
  [
    "a broken connection",
    (response) => void response.socket?.destroy(),
    refusals.allFailed("first", "network"),
    "network"
  ]
]

const rejectedImage = { ...refusals.rejected, message: "Failed to process the reference image.", param: "image" }

/** Faults of the request: nobody else is asked. */
const final: ReadonlyArray<readonly [what: string, reply: Reply, refusal: Refusal]> = [
  ["a 400", failing(400), refusals.rejected],
  ["a 413", failing(413), refusals.rejected],
  ["a 422", failing(422), refusals.rejected],
  ["a prompt that is too long", failing(400, { param: "prompt", code: "string_above_max_length" }), refusals.rejected],
  ["moderation", failing(400, { code: "moderation_blocked" }), refusals.moderated],
  ["moderation by another word", failing(400, { code: "content_policy_violation" }), refusals.moderated],
  ["moderation in a 200", json(200, error({ code: "content_policy_violation" })), refusals.moderated],
  ["moderation of what was drawn", json(200, { data: [], respect_moderation: false }), refusals.moderated],
  ["a reference that it cannot read", failing(400, { code: "invalid_image_file" }), rejectedImage]
]

const slug = (what: string) => what.replaceAll(/\W+/g, "-")
/** One model a row, so that no row meets a circuit that another opened. */
const ids = [...moving, ...final].map(([what]) => slug(what))
const models: ImageModels = {
  ...Object.fromEntries(ids.map((id) => [`${id}-alone`, {}])),
  ...Object.fromEntries(ids.map((id) => [`${id}-pair`, { routes: [onFirst, onSecond] }])),
  refused: { routes: [{ ...onFirst, provider: "refusing" }] },
  weak: {},
  narrow: {
    variants: [
      { resolution: "1K", price_usd: 0.04 },
      { resolution: "4K", price_usd: 0.12 }
    ],
    routes: [
      { ...onFirst, resolutions: ["1K"], edit: false },
      { ...onSecond, edit: true }
    ]
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
  const answer = yield* draw(customer, body)
  assertSecretive(answer)
  const calls = [first.calls.length - before[0], second.calls.length - before[1]]
  return { answer, calls, spent: yield* spent }
})

withLayer(gateway(models), { excludeTestServices: true })("what providers of images answer", (it) => {
  it.effect.each(moving)("%s of the only route", ([what, reply, alone]) =>
    Effect.gen(function* () {
      const { answer, calls, spent } = yield* asking(asked(`${slug(what)}-alone`), { first: reply })
      assertRefused(answer, alone)
      assert.deepStrictEqual({ calls, spent }, { calls: [1, 0], spent: 0n })
    })
  )

  it.effect.each(moving)("%s moves on, unseen, and the last failure is told of", ([what, reply, , status]) =>
    Effect.gen(function* () {
      const body = asked(`${slug(what)}-pair`)
      const moved = yield* asking(body, { first: reply, second: paints() })
      yield* assertLinked(imageOf(moved.answer).url ?? "", painting)
      assert.deepStrictEqual([moved.calls, moved.spent], [[1, 1], usualPrice])

      // The first may be closed by now: the provider's account was at fault.
      const failed = yield* asking(body, { second: reply })
      assertRefused(failed.answer, refusals.allFailed("second", status))
      assert.deepStrictEqual([failed.calls[1], failed.spent], [1, 0n])
    })
  )

  it.effect.each(final)("%s ends the request, and is no fault of the route's", ([what, reply, refusal]) =>
    Effect.gen(function* () {
      for (const kind of ["alone", "pair"]) {
        const { answer, calls, spent } = yield* asking(asked(`${slug(what)}-${kind}`), { first: reply })
        assertRefused(answer, refusal)
        assert.deepStrictEqual({ calls, spent }, { calls: [1, 0], spent: 0n })
      }
    })
  )

  it.effect("moderation six times over leaves the only route open", () =>
    Effect.gen(function* () {
      for (const _ of Array.from({ length: 6 })) {
        assertRefused(
          (yield* asking(asked("weak"), { first: failing(400, { code: "moderation_blocked" }) })).answer,
          refusals.moderated
        )
      }
      imageOf((yield* asking(asked("weak"), { first: paints() })).answer)
    })
  )

  it.effect("five failures in a row close the only route", () =>
    Effect.gen(function* () {
      for (const _ of Array.from({ length: 5 })) {
        const { answer, calls } = yield* asking(asked("refused"))
        assertRefused(answer, refusals.allFailed("refusing", "network"))
        assert.deepStrictEqual(calls, [0, 0])
      }
      assertRefused((yield* asking(asked("refused"))).answer, refusals.noProvider)
    })
  )

  it.effect("only a route that can draw it is asked", () =>
    Effect.gen(function* () {
      const plain = yield* asking(asked("narrow"), { first: paints() })
      const large = yield* asking(asked("narrow", { resolution: "4K" }), { second: paints() })
      const edited = yield* asking(asked("narrow", { image }), { second: paints() })
      assert.deepStrictEqual(
        [plain.calls, large.calls, edited.calls],
        [
          [1, 0],
          [0, 1],
          [0, 1]
        ]
      )
      // Only one route was able: its failure is an error of the provider's, not of all of them.
      assertRefused(
        (yield* asking(asked("narrow", { resolution: "4K" }), { second: failing(500) })).answer,
        refusals.upstream
      )
    })
  )

  it.effect("a picture behind a link of the provider's own is fetched with its key, and served as ours", () =>
    Effect.gen(function* () {
      const { first } = yield* Upstreams
      const { spent, ...customer } = yield* Served.customer()
      yield* first.script(linking(`${first.url}/pictures/hush`), steps({ type: "text/html" }, painting))
      const answer = yield* draw(customer, asked("weak", { image }))
      assertSecretive(answer)
      yield* assertLinked(imageOf(answer).url ?? "", painting)
      assert.deepInclude(first.calls.at(-1), { method: "GET", path: "/pictures/hush" })
      assert.strictEqual(first.calls.at(-1)?.headers.authorization, `Bearer ${hidden.firstKey}`)
      assert.strictEqual(yield* spent, usualPrice)
    })
  )

  it.effect("a picture is served as what it is, whatever a provider calls it", () =>
    Effect.gen(function* () {
      const { first } = yield* Upstreams
      yield* first.script(json(200, { data: [{ b64_json: image }], output_format: "png" }))
      const { url = "" } = imageOf(yield* draw(yield* Served.customer(), asked("weak")))
      yield* assertLinked(url, gif, "image/gif")
    })
  )
})
