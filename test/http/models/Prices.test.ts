import { Effect, Schema } from "effect"
import { ModelList } from "../../../src/http/models/ModelSchema.ts"
import { bearer, call, chat, post, talk } from "../../harness/client/HttpCalls.ts"
import { dataUrl, png } from "../../harness/fixtures/TinyMedia.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import { completion, gateway, Upstreams } from "../../harness/upstream/Upstreams.ts"

const listed = Effect.fnUntraced(function* ({ secret }: { readonly secret: string }) {
  const { text } = yield* call("/v1/models", { headers: bearer(secret) })
  return (yield* Schema.decodeUnknown(Schema.parseJson(ModelList))(text)).data
})

/** USD as nano-USD. */
const nano = (usd: number): bigint => BigInt(Math.round(usd * 1e9))

const pricing = {
  prompt_per_1m_usd: 1,
  completion_per_1m_usd: 2,
  cached_prompt_per_1m_usd: 0.1,
  cache_write_per_1m_usd: 1.25,
  long_context: { above: 300, prompt_per_1m_usd: 3, completion_per_1m_usd: 4, cached_prompt_per_1m_usd: 0.3 }
}
const uncached = { prompt_per_1m_usd: 1.75, completion_per_1m_usd: 14 }

/** Prompt tokens, of which read from and written to the cache, and completion tokens. */
const counts = [
  [60, 40, 15, 5],
  [300, 0, 0, 7],
  [301, 200, 50, 7]
] as const

withLayer(gateway({ tiered: { pricing }, uncached: { pricing: uncached } }))("the listed prices of a chat", (it) => {
  it.effect("are what cached, written and long prompts are charged", function* () {
    const { first } = yield* Upstreams
    const { funds, ...customer } = yield* Served.customer()
    for (const { id, pricing } of yield* listed(customer)) {
      if (!("prompt_per_1m_usd" in pricing)) continue
      for (const [prompt, cached, written, output] of counts) {
        const usage = {
          prompt_tokens: prompt,
          completion_tokens: output,
          prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written }
        }
        yield* first.script(json(200, completion("fine", usage)))
        const { balance } = yield* funds
        const answer = yield* chat(customer, talk(id, "x".repeat(400)))
        assert.strictEqual(answer.status, 200, answer.text)
        const { long_context: long } = pricing
        const rates = long !== undefined && prompt > long.above ? long : pricing
        const usd =
          (prompt - cached - written) * rates.prompt_per_1m_usd +
          cached * rates.cached_prompt_per_1m_usd +
          written * rates.cache_write_per_1m_usd +
          output * rates.completion_per_1m_usd
        assert.strictEqual(balance - (yield* funds).balance, nano(usd / 1e6), `${id}, ${prompt} tokens`)
      }
    }
  })

  it.effect("are the same per token as per million", function* () {
    for (const { pricing } of yield* listed(yield* Served.customer())) {
      if (!("prompt_per_1m_usd" in pricing)) continue
      assert.deepStrictEqual(
        [pricing.prompt, pricing.completion, pricing.input_cache_read, pricing.input_cache_write].map((usd) =>
          Number(`${usd}e6`)
        ),
        [
          pricing.prompt_per_1m_usd,
          pricing.completion_per_1m_usd,
          pricing.cached_prompt_per_1m_usd,
          pricing.cache_write_per_1m_usd
        ]
      )
    }
  })
})

const builtIn = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

withLayer(builtIn)("the listed prices of media", (it) => {
  it.effect("are what every variant of an image is charged", function* () {
    const { funds, ...customer } = yield* Served.customer({ rpm: 1_000_000 })
    for (const { id, pricing } of yield* listed(customer)) {
      if (!("per_image_usd" in pricing)) continue
      assert.strictEqual(pricing.variants[0]?.per_image_usd, pricing.per_image_usd, id)
      for (const { aspect_ratios: ratios = [], per_image_usd, resolution, sizes = [] } of pricing.variants) {
        const shape = sizes.length > 0 ? { size: sizes.at(-1) } : ratios.length > 0 && { aspect_ratio: ratios.at(-1) }
        const { balance } = yield* funds
        const body = { model: id, prompt: "a cat", resolution, ...shape }
        const answer = yield* post("/v1/images/generations")(customer, body)
        assert.strictEqual(answer.status, 200, `${id}: ${answer.text}`)
        assert.strictEqual(balance - (yield* funds).balance, nano(per_image_usd), JSON.stringify(body))
      }
    }
  })

  it.effect("are what the lengths of a video are charged, reserved at first", function* () {
    const { funds, ...customer } = yield* Served.customer({ rpm: 1_000_000 })
    for (const { id, pricing, video } of yield* listed(customer)) {
      if (video === undefined || "prompt_per_1m_usd" in pricing || "per_image_usd" in pricing) continue
      const { per_second_usd, per_video_usd = 0 } = pricing
      const image = video.reference_image === "required" ? { image: dataUrl(png, "image/png") } : {}
      for (const seconds of video.seconds.allowed) {
        const { available } = yield* funds
        const answer = yield* post("/v1/videos")(customer, { model: id, prompt: "a cat", seconds, ...image })
        assert.strictEqual(answer.status, 202, `${id}: ${answer.text}`)
        const price = per_second_usd === undefined ? per_video_usd : per_second_usd * seconds
        assert.strictEqual(available - (yield* funds).available, nano(price), `${id}, ${seconds} s`)
      }
    }
  })
})
