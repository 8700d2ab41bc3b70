import { Effect } from "effect"
import { noOptions } from "../../../src/providers/client/RouteOptions.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { lineOf, options, wrongOptions } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { registered } from "../../providers/Registered.ts"

const problemsOf = (text: string) =>
  Effect.flatMap(registered, (adapters) => Catalog.make(options({ text, adapters }))).pipe(
    Effect.flip,
    Effect.map(({ message }) => message.split("\n"))
  )

const text = `
providers:
  thinker:
    adapter: openai-responses
    base_url: https://thinker.test/v1
    options: {reasoning_summary: loud}
  fal: {adapter: fal-queue, base_url: "https://fal.test"}
families:
  A: {sampling: false}
models:
  - id: deep
    surface: chat
    family: A
    context_length: 1000
    max_output: 100
    pricing: {prompt_per_1m_usd: 1, completion_per_1m_usd: 1}
    routes:
      - {provider: thinker, model: a}
      - {provider: thinker, model: b}
      - provider: thinker
        model: c
        options:
          reasoning_summary: auto
          reasoning_sumary: none
  - id: drawing
    surface: image
    pricing: {per_image_usd: 1}
    routes:
      - {provider: fal, model: a/b, options: {anything: 7, image_field: Image Url}}
`

describe("the options of a route", () => {
  it.effect("are refused once each, at the line where they stand", function* () {
    const problems = yield* problemsOf(text)
    const at = (part: string) => `catalog.yaml:${lineOf(text, part)}: `
    assert.lengthOf(problems, 3)
    const [own, misspelt, nested] = problems
    assert.strictEqual(
      own,
      `${at("options: {reasoning_summary: loud}")}providers.thinker.options.reasoning_summary: must be one of auto, concise, detailed, none`
    )
    assert.strictEqual(
      misspelt,
      `${at("reasoning_sumary")}models[0].routes[2].options.reasoning_sumary: unknown key; did you mean reasoning_summary? Known: reasoning_summary, web_search, inline_images, native, cache, prefill, strict, any_schema, call_id_length, tool_name_length, stated_cost`
    )
    assert.strictEqual(
      nested,
      `${at("image_field")}models[1].routes[0].options.image_field: must be the name of a field`
    )
  })
})

it("a wire without options refuses any by its name, and takes none", () => {
  assert.strictEqual(
    wrongOptions(noOptions.decode({ tone: "dry" })),
    "option tone: unknown key; this adapter has no options"
  )
  assert.strictEqual(wrongOptions(noOptions.decode({})), "")
})
