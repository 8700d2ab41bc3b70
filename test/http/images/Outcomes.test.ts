import { assertRefused, refusals } from "../../harness/client/HttpCalls.ts"
import { assertLinked, imageOf } from "../../harness/client/MediaClient.ts"
import { gif } from "../../harness/fixtures/TinyMedia.ts"
import { draw, gateway, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, steps } from "../../harness/upstream/FakeUpstream.ts"
import { asked, painting, paints } from "../../harness/upstream/Replies.ts"
import { hidden, onFirst, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { asking as askingOf, assertSecretive, failing } from "../errors/ProviderFailures.ts"

const image = gif.toString("base64")
const asking = askingOf(draw)
const served = gateway({
  refused: { routes: [{ ...onFirst, provider: "refusing" }] },
  weak: {},
  shared: {},
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
})

withLayer(served)("the routes of an image", (it) => {
  it.effect("stay open after moderation six times", function* () {
    for (const _ of Array.from({ length: 6 })) {
      assertRefused(
        (yield* asking(asked("weak"), { first: failing(400, { code: "moderation_blocked" }) })).answer,
        refusals.moderated
      )
    }
    imageOf((yield* asking(asked("weak"), { first: paints() })).answer)
  })

  it.effect("are skipped for the customer alone whose five requests in a row made them fail", function* () {
    const failed = yield* Served.customer()
    for (let failures = 0; failures < 5; failures++) {
      assertRefused((yield* asking(asked("shared"), { first: failing(500) }, failed)).answer, refusals.upstream)
    }
    const { answer, asked: calls } = yield* asking(asked("shared"), {}, failed)
    assertRefused(answer, refusals.noProvider)
    assert.deepStrictEqual(calls, [0, 0])
    imageOf((yield* asking(asked("shared"), { first: paints() })).answer)
  })

  it.effect("are skipped after five failures in a row that no request causes", function* () {
    for (const _ of Array.from({ length: 5 })) {
      const { answer, asked: calls } = yield* asking(asked("refused"))
      assertRefused(answer, refusals.allFailed("refusing", "network"))
      assert.deepStrictEqual(calls, [0, 0])
    }
    assertRefused((yield* asking(asked("refused"))).answer, refusals.noProvider)
  })

  it.effect("are used only where they can draw the request", function* () {
    const plain = yield* asking(asked("narrow"), { first: paints() })
    const large = yield* asking(asked("narrow", { resolution: "4K" }), { second: paints() })
    const edited = yield* asking(asked("narrow", { image }), { second: paints() })
    assert.deepStrictEqual(
      [plain.asked, large.asked, edited.asked],
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

  it.effect("may answer with a link on their own host, which is fetched with their key", function* () {
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer()
    yield* first.script(
      json(200, { created: 1, data: [{ url: `${first.url}/pictures/hush` }] }),
      steps({ type: "text/html" }, painting)
    )
    const answer = yield* draw(customer, asked("weak", { image }))
    assertSecretive(answer)
    yield* assertLinked(imageOf(answer).url ?? "", painting)
    assert.deepInclude(first.calls.at(-1), { method: "GET", path: "/pictures/hush" })
    assert.strictEqual(first.calls.at(-1)?.headers.authorization, `Bearer ${hidden.firstKey}`)
    assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect("may mislabel an image, which is served under the type of its bytes", function* () {
    const { first } = yield* Upstreams
    yield* first.script(json(200, { data: [{ b64_json: image }], output_format: "png" }))
    const { url = "" } = imageOf(yield* draw(yield* Served.customer(), asked("weak")))
    yield* assertLinked(url, gif, "image/gif")
  })
})
