import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { imageOf, sizeOf } from "../../harness/client/MediaClient.ts"
import { draw, edit, gateway, keyed } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asked, painting, paints } from "../../harness/upstream/Replies.ts"
import { onFirst, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { blank } from "../../providers/sandbox/PictureSamples.ts"

const variants = [{ resolution: "1K", sizes: ["1024x1024", "1536x1024"], price_usd: 0.04 }]
const squares = [
  { resolution: "1K", sizes: ["512x512"], price_usd: 0.01 },
  { resolution: "1K", sizes: ["1024x1024"], price_usd: 0.05 }
]
const served = gateway({
  art: { variants, routes: [{ ...onFirst, aspect_ratios: ["1:1"] }, onSecond] },
  squares: { variants: squares },
  plain: {}
})

withLayer(served)("the shape of an image", (it) => {
  it.effect("is left to the only routes that make it, and sent to them", function* () {
    const { first, second } = yield* Upstreams
    const customer = yield* Served.customer()
    const calls = first.calls.length
    yield* second.script(paints(), paints())
    imageOf(yield* draw(customer, asked("art", { size: "1536x1024" })))
    assert.deepInclude(second.calls.at(-1)?.body, { size: "1536x1024" })
    imageOf(yield* edit(customer, asked("art", { image: painting.toString("base64"), aspect_ratio: "3:2" })))
    assert.lengthOf(first.calls, calls)
  })

  it.effect("is not sent to a route that makes one only", function* () {
    const { first } = yield* Upstreams
    yield* first.script(paints())
    imageOf(yield* draw(yield* Served.customer(), asked("art", { size: "1024x1024" })))
    assert.notProperty(first.calls.at(-1)?.body, "size")
  })

  it.effect("is sent to a route that makes it in several sizes", function* () {
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer()
    yield* first.script(paints())
    imageOf(yield* draw(customer, asked("squares", { size: "1024x1024" })))
    assert.deepInclude(first.calls.at(-1)?.body, { size: "1024x1024" })
    assert.strictEqual(yield* spent, 50_000_000n)
  })

  it.effect("is told as that of the picture, in a replay too", function* () {
    const { second } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* second.script(paints(blank(1536, 1024)))
    const body = asked("art", { size: "1400x1000" })
    const made = yield* draw(customer, body, keyed("k"))
    assert.deepInclude(second.calls.at(-1)?.body, { size: "1536x1024" })
    assert.strictEqual(sizeOf(made), "1536x1024")
    assert.strictEqual((yield* draw(customer, body, keyed("k"))).text, made.text)
  })

  it.effect("is refused before anything is held where its orientation cannot be kept", function* () {
    const { spent, ...customer } = yield* Served.customer()
    const image = painting.toString("base64")
    const refusal = badRequest("`size` must be one of auto, 1024x1024, 1536x1024 for `art`.", "size")
    assertRefused(yield* draw(customer, asked("art", { size: "1024x1536" })), refusal)
    assertRefused(yield* edit(customer, asked("art", { image, size: "1024x1536" })), refusal)
    const ofSquares = badRequest("`aspect_ratio` must be one of auto, 1:1 for `plain`.", "aspect_ratio")
    assertRefused(yield* draw(customer, asked("plain", { aspect_ratio: "16:9" })), ofSquares)
    assert.strictEqual(yield* spent, 0n)
  })
})
