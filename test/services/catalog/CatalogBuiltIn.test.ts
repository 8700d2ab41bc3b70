import { readFileSync } from "node:fs"
import { Ajv } from "ajv"
import { Effect, Either } from "effect"
import { parse } from "yaml"
import { check } from "../../../src/cli/prices/Check.ts"
import { chooseVariant } from "../../../src/domain/Image.ts"
import type { ReasoningEffort, Route } from "../../../src/domain/Model.ts"
import { ratioOf } from "../../../src/domain/Shape.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { catalogJsonSchema } from "../../../src/services/catalog/CatalogProblems.ts"
import { listImage } from "../../../src/services/catalog/ImageEntry.ts"
import { builtIn, edited, load, options, small } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { base, decodeBody } from "../../http/images/ImageBodies.ts"

const square = decodeBody(base)
const everyKey = Object.fromEntries([...builtIn.matchAll(/credential: (\w+)/g)].map(([, name = ""]) => [name, "k"]))

describe("the built-in catalog", () => {
  const all = Catalog.make(options({ text: builtIn, sandbox: true }))

  it.effect("lists the ids of each surface in order", function* () {
    const { models, offModels: off } = yield* all
    assert.deepStrictEqual(off, [])
    const families = models.flatMap((model) => (model.surface === "chat" ? [model.family] : [])).join("")
    assert.strictEqual(families, "AAAAAAABBBBBBCCCCCCCCCDD")
    assert.lengthOf(
      models.filter(({ surface }) => surface === "image"),
      14
    )
    const videos = models.filter((model) => model.surface === "video")
    assert.lengthOf(videos, 7)
    assert.isTrue(videos[5]?.id.endsWith("2.3"))
    assert.strictEqual(videos[5]?.referenceImage, "required")
    assert.isTrue(videos.every(({ referenceImage }, index) => index === 5 || referenceImage !== "required"))
    const large = models.filter((model) => model.surface === "image" && model.variants.length === 3)
    assert.isAtLeast(large.length, 2)
  })

  it.effect("follows the rules of each family", function* () {
    const { models } = yield* all
    const upToXhigh: ReadonlyArray<ReasoningEffort> = ["low", "medium", "high", "xhigh"]
    for (const model of models) {
      if (model.surface !== "chat") continue
      const can = (capability: "tools" | "vision" | "response_format" | "web_search") =>
        model.capabilities.has(capability)
      assert.isTrue(can("tools") && can("vision"), model.id)
      assert.strictEqual(model.sampling, model.family === "A", model.id)
      assert.strictEqual(can("response_format"), "AB".includes(model.family), model.id)
      assert.strictEqual(can("web_search"), "AB".includes(model.family), model.id)
      assert.strictEqual(model.maxOutputPolicy, model.family === "C" ? "reject" : "clamp", model.id)
      if (model.family === "C") assert.deepInclude(model, { maxOutput: 8192, reasoning: "binary" })
      if (model.family === "A") assert.deepStrictEqual(model.reasoning, ["low", "medium", "high"])
      if (model.family === "B") {
        assert.deepStrictEqual(model.reasoning, model.id.endsWith("5.2") ? ["low", "high"] : upToXhigh)
      }
    }
    const endings = ["5.2", "5.4", "5.5"].map((end) => models.some(({ id }) => id.endsWith(end)))
    assert.deepStrictEqual(endings, [true, true, true])
  })

  it.effect("makes landscapes, portraits and squares of every image model, and says so", function* () {
    const { models } = yield* all
    for (const model of models) {
      if (model.surface !== "image") continue
      const { params } = listImage(model)
      assert.isTrue(
        params.some(({ key }) => key === "size" || key === "aspect_ratio"),
        model.id
      )
      for (const { resolution } of model.variants) {
        for (const size of ["1024x1024", "1536x1024", "1024x1536", "1792x1024", "1024x1792"]) {
          const asked = { ...square, model: model.id, resolution, size }
          const { shape } = Either.getOrThrow(chooseVariant(model, asked))
          const made = ratioOf(shape?.size ?? shape?.aspectRatio ?? "")
          assert.strictEqual(Math.sign(made - 1), Math.sign(ratioOf(size) - 1), `${model.id} ${resolution} ${size}`)
        }
      }
    }
  })

  it.effect("promises nothing that a route would lose", function* () {
    const { losses, models } = yield* check(options({ text: builtIn }))
    assert.deepStrictEqual(losses, [])
    assert.isAbove(models.flatMap(({ routes }) => routes.flatMap(({ margins }) => margins)).length, 100)
  })

  it.effect("can call every chat model with one vendor's credential, and over Chat Completions", function* () {
    const counts = {
      GEMINI_API_KEY: 7,
      OPENAI_API_KEY: 6,
      ANTHROPIC_API_KEY: 9,
      XAI_API_KEY: 2,
      OPENROUTER_API_KEY: 24
    }
    for (const [variable, count] of Object.entries(counts)) {
      const environment = { [variable]: "k" }
      const { models } = yield* load({ text: builtIn, environment, sandbox: "when-no-credential" })
      const chats = models.filter(({ surface }) => surface === "chat")
      assert.lengthOf(chats, count, variable)
      for (const { id, routes } of chats) {
        assert.isTrue(
          routes.some(({ provider }) => provider.adapter === "openai-chat"),
          id
        )
      }
    }
  })
})

describe("the routes of the built-in catalog", () => {
  const all = Effect.map(Catalog.make(options({ text: builtIn, environment: everyKey })), ({ models }) => models)
  const narrowed = (route: Route) => (route.capabilities === undefined ? "all" : [...route.capabilities].join(" "))

  it.effect("go to the vendor's own wire first", function* () {
    const own = new Map([
      ["A", "google gemini"],
      ["B", "openai openai-responses"],
      ["C", "anthropic anthropic"],
      ["D", "xai openai-chat"]
    ])
    for (const model of yield* all) {
      if (model.surface !== "chat") continue
      const [first] = model.routes.toSorted((a, b) => a.preference - b.preference)
      if (first === undefined) return assert.fail(model.id)
      assert.strictEqual(`${first.provider.name} ${first.provider.adapter}`, own.get(model.family), model.id)
      assert.strictEqual(first.model, model.id)
      assert.isUndefined(first.capabilities, model.id)
    }
  })

  it.effect("lead to two vendors for every model", function* () {
    for (const { id, routes } of yield* all) {
      const hosts = new Set(routes.map(({ provider }) => new URL(provider.baseUrl ?? "").host))
      assert.isAtLeast(hosts.size, 2, id)
      const order = routes.map(({ preference }) => preference)
      assert.deepStrictEqual(
        order,
        [...new Set(order)].toSorted((a, b) => a - b),
        `${id}: one after the other`
      )
    }
  })

  it.effect("can do less than the model only where their wire can", function* () {
    const whole = "tools vision response_format web_search reasoning"
    for (const model of yield* all) {
      if (model.surface !== "chat") continue
      for (const route of model.routes) {
        const { name } = route.provider
        const expected = {
          "google-openai": "tools vision response_format reasoning",
          // Chat Completions takes no tools of models that reason by default.
          "openai-chat":
            model.id === "gpt-5.2" ? "tools vision response_format reasoning" : "vision response_format reasoning",
          "anthropic-openai": "tools vision"
        }[name]
        assert.strictEqual(narrowed(route), expected ?? "all", route.id)
      }
      if ("AB".includes(model.family)) assert.sameMembers([...model.capabilities], whole.split(" "), model.id)
    }
  })

  it.effect("leave stop sequences to the gateway where the host refuses or ignores them", function* () {
    for (const model of yield* all) {
      if (model.surface !== "chat") continue
      for (const { id, options: given, provider } of model.routes) {
        const cut = provider.adapter === "openai-chat" && "BD".includes(model.family)
        assert.strictEqual(given["stop"], cut ? "cut" : undefined, id)
      }
    }
  })

  it.effect("have a known cost in every tier that the vendor has a price for", function* () {
    // OpenAI bills pictures by tokens, and so does fal for OpenAI's.
    const byTokens = ["gpt-image-2@openai-images", "gpt-image-1.5@fal", "gpt-image-1-mini@fal"]
    const unknown: Array<string> = []
    for (const model of yield* all) {
      if (model.surface === "image") {
        for (const { cost, id, resolutions } of model.routes) if (cost.size < resolutions.size) unknown.push(id)
        continue
      }
      if (model.surface === "video") {
        for (const { cost, id } of model.routes) if (cost === undefined) unknown.push(id)
        continue
      }
      for (const { cost, id } of model.routes) {
        if (cost === undefined) unknown.push(id)
        for (const { cachedPrompt, cacheWrite, longContext } of [model.pricing, ...(cost ? [cost] : [])]) {
          if (longContext === undefined) continue
          assert.isTrue(cachedPrompt === undefined || longContext.cachedPrompt !== undefined, `${id}: cached, long`)
          assert.isTrue(cacheWrite === undefined || longContext.cacheWrite !== undefined, `${id}: written, long`)
        }
      }
    }
    assert.deepStrictEqual(unknown, byTokens)
  })

  it("have a comment beside each price with its source and date", () => {
    const prices = builtIn.split("\n").filter((line) => /^ {4}(pricing|variants):/.test(line))
    assert.lengthOf(prices, 45)
    const mute = prices.filter((line) => !/# .*(LiteLLM|OpenRouter|models\.dev|GenSpend|fal)\b.* 20\d\d/.test(line))
    assert.deepStrictEqual(mute, [])
  })
})

describe("the JSON Schema of a catalog", () => {
  const validate = new Ajv({ strict: false, formats: { uri: true, date: true, "date-time": true } }).compile(
    catalogJsonSchema()
  )

  it("is the same as the committed catalog.schema.json", () => {
    const committed: unknown = JSON.parse(
      readFileSync(new URL("../../../catalog.schema.json", import.meta.url), "utf8")
    )
    assert.deepStrictEqual(JSON.parse(JSON.stringify(catalogJsonSchema())), committed)
  })

  it("accepts the built-in catalog and refuses a typo", () => {
    assert.isTrue(validate(parse(builtIn)), JSON.stringify(validate.errors?.slice(0, 3)))
    assert.isTrue(validate(parse(small)), JSON.stringify(validate.errors?.slice(0, 3)))
    assert.isFalse(validate(parse(edited("max_output: 64000", "max_ouput: 64000"))))
    assert.isFalse(validate(parse(edited("prompt_per_1m_usd: 1.5\n", "prompt_per_1m_usd: cheap\n"))))
  })
})
