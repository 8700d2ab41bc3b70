import type { ListedModel } from "../../../src/domain/ListedModel.ts"
import { listModels } from "../../../src/services/catalog/ModelEntry.ts"
import { edited, keys, load } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

const field = (model: ListedModel | undefined, name: string) => model?.params.find(({ key }) => key === name)

describe("the list of models", () => {
  it.effect("shows prices, savings and the fields of each surface", function* () {
    const { models } = yield* load({ environment: keys })
    const { data, object } = listModels(models)
    assert.strictEqual(object, "list")
    const [talk, draw, film] = data
    assert.deepStrictEqual(talk?.pricing, {
      prompt_per_1m_usd: 1.5,
      completion_per_1m_usd: 7.5,
      cached_prompt_per_1m_usd: 0.003625,
      cache_write_per_1m_usd: 1.5,
      cache_write_1h_per_1m_usd: 1.5,
      long_context: {
        above: 200_000,
        prompt_per_1m_usd: 3,
        completion_per_1m_usd: 11.25,
        cached_prompt_per_1m_usd: 0.003625,
        cache_write_per_1m_usd: 3,
        cache_write_1h_per_1m_usd: 3
      },
      prompt: "0.0000015",
      completion: "0.0000075",
      input_cache_read: "0.000000003625",
      input_cache_write: "0.0000015",
      input_cache_write_1h: "0.0000015",
      approximate: true,
      discount_pct: 16,
      official_prompt_per_1m_usd: 2,
      official_completion_per_1m_usd: 9
    })
    assert.deepInclude(talk, {
      object: "model",
      owned_by: "generation-gateway",
      context_length: 1_000_000,
      top_provider: { context_length: 1_000_000, max_completion_tokens: 64_000 },
      architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
      capabilities: ["tools", "vision", "web_search", "reasoning"]
    })
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
      architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
      capabilities: ["edit"],
      supported_parameters: ["resolution", "image", "response_format"],
      image: { max_references: 8, max_n: 1, resolutions: ["1K", "4K"], sizes: [], aspect_ratios: [] },
      pricing: {
        per_image_usd: 0.04,
        per_image_4k_usd: 0.12,
        variants: [
          { resolution: "1K", per_image_usd: 0.04, official_per_image_usd: 0.05 },
          { resolution: "4K", per_image_usd: 0.12 }
        ],
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
    assert.deepInclude(film, {
      architecture: { input_modalities: ["text", "image"], output_modalities: ["video"] },
      capabilities: ["reference_image"],
      supported_parameters: ["seconds", "image"],
      video: { seconds: { allowed: [4, 6, 8], default: 8 }, reference_image: "optional" }
    })
    assert.deepStrictEqual(film?.pricing, { per_second_usd: 0.1, approximate: false })
    assert.deepStrictEqual(film?.params, [
      { key: "seconds", type: "slider", default: 8, min: 4, max: 8, step: 2 },
      { key: "image", type: "image" }
    ])
  })

  it.effect("leaves out sampling, savings and a default above the cap where a model has none", function* () {
    const text = edited("family: A", "family: C")
      .replace("max_output: 64000", "max_output: 1000")
      .replace("[low, medium, high]", "binary")
      .replace("official: {prompt_per_1m_usd: 2,", "official: {prompt_per_1m_usd: 1.5,")
      .replace("allowed: [8, 4, 6], default: 8", "allowed: [10, 5], default: 5")
    const [talk, , film] = listModels((yield* load({ environment: keys, text })).models).data
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

  it.effect("shows the shapes of a resolution together where they cost the same", function* () {
    const text = edited(
      "- {resolution: 1K, price_usd: 0.04, official_usd: 0.05}",
      `- {resolution: 1K, sizes: [1024x1024], price_usd: 0.04}
      - {resolution: 1K, sizes: [1536x1024, 1024x1536], price_usd: 0.05}`
    ).replace(
      "{resolution: 4K, price_usd: 0.12}",
      `{resolution: 4K, aspect_ratios: ["1:1", "16:9"], price_usd: 0.12}
      - {resolution: 4K, aspect_ratios: ["9:16"], price_usd: 0.11}`
    )
    const [, draw] = listModels((yield* load({ environment: keys, text })).models).data
    assert.deepStrictEqual(draw?.pricing, {
      per_image_usd: 0.04,
      per_image_4k_usd: 0.11,
      variants: [
        { resolution: "1K", sizes: ["1024x1024"], per_image_usd: 0.04 },
        { resolution: "1K", sizes: ["1536x1024", "1024x1536"], per_image_usd: 0.05 },
        { resolution: "4K", aspect_ratios: ["1:1", "16:9"], per_image_usd: 0.12 },
        { resolution: "4K", aspect_ratios: ["9:16"], per_image_usd: 0.11 }
      ],
      approximate: false
    })
    assert.deepInclude(draw?.image, {
      sizes: ["1024x1024", "1536x1024", "1024x1536"],
      aspect_ratios: ["1:1", "3:2", "2:3", "16:9", "9:16"]
    })
  })

  it.effect("shows what the routes that are left can do", function* () {
    const { SECOND_KEY, CLIPS_KEY } = keys
    const [talk] = listModels((yield* load({ environment: { SECOND_KEY, CLIPS_KEY } })).models).data
    assert.deepInclude(talk, {
      architecture: { input_modalities: ["text"], output_modalities: ["text"] },
      capabilities: ["tools"]
    })
    const parameters = new Set(talk?.supported_parameters)
    assert.isTrue(["tools", "tool_choice", "parallel_tool_calls"].every((name) => parameters.has(name)))
    assert.isFalse(["reasoning_effort", "web_search", "response_format"].some((name) => parameters.has(name)))
  })
})
