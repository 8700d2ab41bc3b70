import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ListedModel } from "../../../src/services/catalog/ListedModel.ts"
import { listing } from "../../../src/services/catalog/Surfaces.ts"
import { edited, keys, load } from "../../harness/fixtures/Catalogs.ts"

const field = (model: ListedModel | undefined, name: string) => model?.params.find(({ key }) => key === name)

describe("the list of models", () => {
  it.effect("shows prices, savings and the fields of each surface", () =>
    Effect.gen(function* () {
      const { models } = yield* load({ environment: keys })
      const { data, object } = listing(models)
      assert.strictEqual(object, "list")
      const [talk, draw, film] = data
      assert.deepStrictEqual(talk?.pricing, {
        prompt_per_1m_usd: 1.5,
        completion_per_1m_usd: 7.5,
        approximate: true,
        discount_pct: 16,
        official_prompt_per_1m_usd: 2,
        official_completion_per_1m_usd: 9
      })
      assert.deepInclude(talk, { object: "model", owned_by: "generation-gateway", context_length: 1_000_000 })
      assert.deepStrictEqual(
        talk?.params.map(({ key }) => key),
        [
          "temperature",
          "top_p",
          "max_tokens",
          "reasoning_effort",
          "web_search",
          "stop",
          "seed",
          "frequency_penalty",
          "presence_penalty"
        ]
      )
      assert.deepStrictEqual(field(talk, "max_tokens"), {
        key: "max_tokens",
        type: "number",
        default: 4096,
        min: 1,
        max: 64_000,
        step: 1
      })
      assert.deepStrictEqual(draw, {
        id: "draw",
        object: "model",
        created: 0,
        owned_by: "generation-gateway",
        surface: "image",
        pricing: {
          per_image_usd: 0.04,
          per_image_4k_usd: 0.12,
          approximate: false,
          discount_pct: 20,
          official_per_image_usd: 0.05
        },
        params: [
          { key: "resolution", type: "select", default: "1K", options: ["1K", "4K"] },
          { key: "image", type: "image" },
          { key: "response_format", type: "select", default: "url", options: ["url", "b64_json"] }
        ]
      })
      assert.deepStrictEqual(film?.pricing, { per_second_usd: 0.1, approximate: false })
      assert.deepStrictEqual(film?.params, [
        { key: "seconds", type: "slider", default: 8, min: 4, max: 8, step: 2 },
        { key: "image", type: "image" }
      ])
    })
  )

  it.effect("leaves out sampling, savings and a default above the cap where a model has none", () =>
    Effect.gen(function* () {
      const text = edited("family: A", "family: C")
        .replace("max_output: 64000", "max_output: 1000")
        .replace("[low, medium, high]", "binary")
        .replace("official: {prompt_per_1m_usd: 2,", "official: {prompt_per_1m_usd: 1.5,")
        .replace("allowed: [8, 4, 6], default: 8", "allowed: [10, 5], default: 5")
      const [talk, , film] = listing((yield* load({ environment: keys, text })).models).data
      assert.deepStrictEqual(talk?.params, [
        { key: "max_tokens", type: "number", default: 1000, min: 1, max: 1000, step: 1 },
        { key: "reasoning_effort", type: "select", options: ["low", "medium", "high", "xhigh"] },
        { key: "web_search", type: "boolean", default: false },
        { key: "stop", type: "text" }
      ])
      assert.notProperty(talk?.pricing, "discount_pct")
      assert.deepStrictEqual(field(film, "seconds"), {
        key: "seconds",
        type: "select",
        default: "5",
        options: ["5", "10"]
      })
    })
  )
})
