import { Effect, Redacted, Struct } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { chat, edited, keys, load, routeIds } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("Catalog", () => {
  it.effect("reads every field of a chat model", function* () {
    const catalog = yield* load({ environment: keys })
    const talk = chat(catalog.find("talk"))
    assert.strictEqual(talk.created, 1_784_592_000)
    assert.deepStrictEqual(talk.pricing, {
      prompt: NanoUsd(1_500_000_000n),
      completion: NanoUsd(7_500_000_000n),
      cachedPrompt: NanoUsd(3_625_000n),
      cacheWrite: undefined,
      cacheWriteHour: undefined,
      webSearch: undefined,
      longContext: {
        above: 200_000,
        prompt: NanoUsd(3_000_000_000n),
        completion: NanoUsd(11_250_000_000n),
        cachedPrompt: undefined,
        cacheWrite: undefined,
        cacheWriteHour: undefined
      }
    })
    assert.deepStrictEqual([...talk.capabilities], ["tools", "vision", "web_search", "reasoning"])
    assert.deepStrictEqual(talk.reasoning, ["low", "medium", "high"])
    assert.deepInclude(talk, { family: "A", maxOutput: 64_000, maxOutputPolicy: "clamp", sampling: true })
    assert.deepInclude(talk, { contextLength: 1_000_000, imageTokens: 2500 })
  })

  it.effect("refuses credentials that no provider can take, without quoting them", function* () {
    for (const [secret, problem] of [
      ['"sk-first"', "has quotes around it"],
      ["'sk-first'", "has quotes around it"],
      ["sk-\u200bfirst", "has an invalid character"],
      ["sk-\nfirst", "has an invalid character"]
    ] as const) {
      const { message } = yield* Effect.flip(load({ environment: { ...keys, FIRST_KEY: secret } }))
      assert.include(message, `providers.first.credential: FIRST_KEY ${problem}`)
      assert.notInclude(message, "sk-")
    }
  })

  it.effect("refuses a credential whose file gives no value", function* () {
    const { message } = yield* Effect.flip(
      load({ environment: { ...keys, FIRST_KEY: "", FIRST_KEY_FILE: "/nowhere" } })
    )
    assert.include(
      message,
      "providers.first.credential: FIRST_KEY has no value: the file of FIRST_KEY_FILE is empty or cannot be read, or both variables are set"
    )
    yield* load({ environment: { ...keys, FIRST_KEY_FILE: "/run/secrets/first", TLS_KEY_FILE: "/nowhere" } })
  })

  it.effect("builds routes with their provider, options and narrowing", function* () {
    const { find } = yield* load({ environment: { ...keys, FIRST_KEY: "  sk-first \n" } })
    const { routes } = chat(find("talk"))
    assert.deepStrictEqual(routes.map(Struct.get("id")), ["talk@first", "talk@first#2", "talk@second"])
    const [one, two, three] = routes
    assert.deepStrictEqual(one?.options, { max_tokens_field: "max_completion_tokens", retries: 5 })
    assert.deepStrictEqual(two?.options, { max_tokens_field: "max_completion_tokens", retries: 2 })
    assert.deepStrictEqual(
      routes.map(({ preference, weight }) => [preference, weight]),
      [
        [1, 1],
        [1, 3],
        [2, 1]
      ]
    )
    assert.strictEqual(one?.provider.baseUrl, "https://first.test/v1")
    assert.deepStrictEqual(one?.provider.headers, { "x-team": "blue" })
    const credential = one?.provider.credential
    assert.strictEqual(credential && Redacted.value(credential), "sk-first")
    assert.notInclude(JSON.stringify(one), "sk-first")
    assert.strictEqual(one?.capabilities, undefined)
    assert.deepStrictEqual([...(two?.capabilities ?? [])], ["tools", "vision", "reasoning"])
    assert.deepStrictEqual([...(three?.capabilities ?? [])], ["tools"])
  })

  it.effect("reads image and video models", function* () {
    const { find } = yield* load({ environment: keys })
    const draw = find("draw")
    assert.strictEqual(draw?.surface, "image")
    if (draw?.surface !== "image") return
    assert.deepStrictEqual(draw.variants.map(Struct.get("resolution")), ["1K", "4K"])
    assert.deepStrictEqual(draw.variants.map(Struct.get("price")), [NanoUsd(40_000_000n), NanoUsd(120_000_000n)])
    assert.strictEqual(draw.routes[0]?.editModel, "v/draw/edit")
    const film = find("film")
    assert.strictEqual(film?.surface, "video")
    if (film?.surface !== "video") return
    assert.deepStrictEqual(film.seconds, { allowed: [4, 6, 8], default: 8 })
    assert.deepInclude(film.pricing, { per: "second" })
    assert.deepInclude(film.routes[0], { secondsAs: "suffixed", imageModel: "v/image", referenceImage: "optional" })
  })

  it.effect("reads every way to write a length", function* () {
    const as = (written: string) =>
      load({ environment: keys, text: edited('"8s"', written) }).pipe(Effect.map(({ find }) => find("film")?.routes[0]))
    for (const [written, meant] of [
      ['"8"', "text"],
      ["8", "number"],
      ["none", "omitted"]
    ] as const) {
      assert.deepInclude(yield* as(written), { secondsAs: meant })
    }
  })

  it.effect("leaves out a model without a credential, and names what to set", function* () {
    const none = yield* load({ environment: { FIRST_KEY: "  ", SECOND_KEY: "" } })
    assert.deepStrictEqual(none.models, [])
    assert.deepStrictEqual(none.offModels, [
      { id: "talk", reason: "set FIRST_KEY or SECOND_KEY" },
      { id: "draw", reason: "set CLIPS_KEY" },
      { id: "film", reason: "set CLIPS_KEY" }
    ])
    const some = yield* load({ environment: { CLIPS_KEY: "k" } })
    assert.deepStrictEqual(some.models.map(Struct.get("id")), ["draw", "film"])
    assert.strictEqual(some.find("talk"), undefined)
    assert.deepStrictEqual(
      some.providers.map(({ account, isReady }) => [account.name, isReady] as const),
      [
        ["first", false],
        ["second", false],
        ["clips", true]
      ]
    )
  })

  it.effect("promises only what the routes that can be called can do", function* () {
    const { find } = yield* load({ environment: { SECOND_KEY: "k" } })
    const talk = chat(find("talk"))
    assert.deepStrictEqual(routeIds(talk), ["talk@second"])
    assert.deepStrictEqual([...talk.capabilities], ["tools"])
    assert.strictEqual(talk.reasoning, "none")
  })

  it.effect("takes a provider without a credential as ready", function* () {
    const { find, sandbox } = yield* load({
      text: edited(", credential: SECOND_KEY", ""),
      sandbox: "when-no-credential"
    })
    assert.deepStrictEqual(routeIds(find("talk")), ["talk@second"])
    assert.isFalse(sandbox)
  })

  it.effect("lowers a model's output cap to its family's", function* () {
    const { find } = yield* load({ environment: keys, text: edited("family: A", "family: C") })
    assert.deepInclude(chat(find("talk")), { maxOutput: 8192, maxOutputPolicy: "reject", sampling: false })
  })
})

describe("the sandbox", () => {
  it.effect("costs what the model's first route with a cost does", function* () {
    const text = edited("preference: 2", "preference: 2, cost: {prompt_per_1m_usd: 1, completion_per_1m_usd: 2}")
      .replace(
        "edit_model: v/draw/edit",
        "edit_model: v/draw/edit, cost: {variants: [{resolution: 1K, price_usd: 0.03}]}"
      )
      .replace("image_model: v/image", "image_model: v/image, cost: {per_second_usd: 0.07}")
    const { find } = yield* load({ sandbox: "when-no-credential", text })
    const [paid, other] = chat(find("talk")).routes
    assert.deepInclude(paid?.cost, { prompt: NanoUsd(1_000_000_000n), completion: NanoUsd(2_000_000_000n) })
    assert.deepStrictEqual(other?.cost, paid?.cost)
    assert.deepInclude(find("draw")?.routes[1], {
      cost: new Map([
        ["1K", NanoUsd(30_000_000n)],
        ["4K", NanoUsd(96_000_000n)]
      ])
    })
    assert.deepInclude(find("film")?.routes[1], { cost: { per: "second", price: NanoUsd(70_000_000n) } })
  })

  const lowered = (find: Effect.Effect.Success<ReturnType<typeof load>>["find"]) => {
    assert.deepInclude(chat(find("talk")).routes[0]?.cost, {
      prompt: NanoUsd(1_200_000_000n),
      completion: NanoUsd(6_000_000_000n)
    })
    assert.deepInclude(find("draw")?.routes[0], {
      cost: new Map([
        ["1K", NanoUsd(32_000_000n)],
        ["4K", NanoUsd(96_000_000n)]
      ])
    })
    assert.deepInclude(find("film")?.routes[0], { cost: { per: "second", price: NanoUsd(80_000_000n) } })
  }

  it.effect("costs 80 % of the price if no route has a cost", function* () {
    lowered((yield* load({ sandbox: "when-no-credential" })).find)
  })

  it.effect("costs 80 % of the price if the catalog sells at cost", function* () {
    const text = edited("preference: 2", "preference: 2, cost: {prompt_per_1m_usd: 1.5, completion_per_1m_usd: 7.5}")
      .replace(
        "edit_model: v/draw/edit",
        "edit_model: v/draw/edit, cost: {variants: [{resolution: 1K, price_usd: 0.04}, {resolution: 4K, price_usd: 0.12}]}"
      )
      .replace("image_model: v/image", "image_model: v/image, cost: {per_second_usd: 0.1}")
    lowered((yield* load({ sandbox: "when-no-credential", text })).find)
  })

  it.effect("serves every model while there is no credential", function* () {
    const { models, offModels: off, providers, sandbox, find } = yield* load({ sandbox: "when-no-credential" })
    assert.isTrue(sandbox)
    assert.deepStrictEqual(off, [])
    for (const model of models) {
      assert.deepStrictEqual(routeIds(model), [`${model.id}@sandbox`, `${model.id}@sandbox-b`])
      assert.deepStrictEqual(model.routes.map(Struct.get("preference")), [1, 2])
      assert.isTrue(model.routes.every(({ provider }) => provider.adapter === "sandbox"))
    }
    assert.deepStrictEqual(models.map(Struct.get("id")), ["talk", "draw", "film"])
    assert.isTrue(chat(find("talk")).capabilities.has("web_search"))
    assert.includeMembers(
      providers.map(({ account }) => account.name),
      ["sandbox", "sandbox-b"]
    )
  })

  it.effect("serves nothing once there is a credential, unless it is forced", function* () {
    const environment = { SECOND_KEY: "k" }
    const without = yield* load({ environment, sandbox: "when-no-credential" })
    assert.isFalse(without.sandbox)
    assert.deepStrictEqual(without.models.map(Struct.get("id")), ["talk"])
    const forced = yield* load({ environment, sandbox: true })
    assert.isTrue(forced.sandbox)
    assert.deepStrictEqual(routeIds(forced.find("talk")), ["talk@second"])
    assert.deepStrictEqual(routeIds(forced.find("film")), ["film@sandbox", "film@sandbox-b"])
    const refused = yield* load({ sandbox: false })
    assert.deepStrictEqual(refused.models, [])
  })

  it.effect("works as a provider of a catalog without address or credential", function* () {
    const text = edited(
      'second: {adapter: openai-chat, base_url: "http://127.0.0.1:9/v1", credential: SECOND_KEY}',
      "second: {adapter: sandbox}"
    )
    const { find, sandbox } = yield* load({ text })
    assert.deepStrictEqual(routeIds(find("talk")), ["talk@second"])
    assert.isFalse(sandbox)
    const both = yield* load({ text, environment: keys })
    assert.lengthOf(both.find("talk")?.routes ?? [], 3)
  })
})
