/** Every place that shows or takes an amount, compared with arithmetic that knows only the catalog's text and the usage. */

import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { explainRequest } from "../../../src/services/admin/RequestExplanation.ts"
import { hasAllCases } from "../../harness/Cases.ts"
import { bearer, call, post } from "../../harness/client/HttpCalls.ts"
import { assertRatesStored, eventually } from "../../harness/database/Money.ts"
import * as Random from "../../harness/fixtures/Random.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { earlyPolls } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { done, event, json, type Reply, sse } from "../../harness/upstream/FakeUpstream.ts"
import { isStream, paints } from "../../harness/upstream/Replies.ts"
import { chunk, completion, credentials, Upstreams, layer as upstreams } from "../../harness/upstream/Upstreams.ts"

const seed = process.env["TEST_SEED"] ?? "by hand"
const random = Random.make(seed)

/** Integer arithmetic only. A percentage is in hundredths of a percent. */
const nanoOf = (usd: string): bigint => {
  const [whole = "0", decimals = ""] = usd.split(".")
  return BigInt(whole) * 1_000_000_000n + BigInt(decimals.padEnd(9, "0"))
}
const halfUp = (numerator: bigint, denominator: bigint) => (2n * numerator + denominator) / (2n * denominator)
const added = (price: bigint, hundredths: bigint) => halfUp(price * (10_000n + hundredths), 10_000n)
const ceiling = (total: bigint, unit: bigint) => total / unit + (total % unit === 0n ? 0n : 1n)

const hundredthsOf = (percent: string): bigint => {
  const [, sign, whole = "0", decimals = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(percent) ?? []
  const magnitude = BigInt(whole + decimals.padEnd(2, "0"))
  return sign === "-" ? -magnitude : magnitude
}

/** A price in USD with one to nine decimals, as an operator writes it. */
const price = (): string => {
  const digits = random.integer(1, 9)
  return `${random.integer(0, 9)}.${String(random.integer(1, 10 ** digits - 1)).padStart(digits, "0")}`
}

type Prices = Readonly<Record<string, string>>

const kinds = ["prompt", "completion", "cached_prompt", "cache_write", "cache_write_1h"] as const
type Kind = (typeof kinds)[number]
const parents = { cached_prompt: "prompt", cache_write: "prompt", cache_write_1h: "cache_write" } as const

const keyOf = (kind: Kind) => `${kind}_per_1m_usd`
const someKinds = (): Prices =>
  Object.fromEntries(
    kinds
      .filter((kind) => kind === "prompt" || kind === "completion" || random.chance(0.6))
      .map((kind) => [keyOf(kind), price()])
  )

const above = 1_000

interface ChatPrices {
  readonly base: Prices
  readonly long: Prices | undefined
}

const chats: Readonly<Record<string, ChatPrices>> = Object.fromEntries(
  ["plain", "tiered", "short", "deep"].map((id, index) => [
    id,
    { base: { ...someKinds(), web_search_per_1k_usd: price() }, long: index % 2 === 1 ? someKinds() : undefined }
  ])
)
const images: Readonly<Record<string, Prices>> = {
  sketch: { "1K": price(), "4K": price() },
  portrait: { "1K": price() }
}
const videos = { reel: { per_second_usd: price() }, clip: { per_video_usd: price() } } as const

const markups = {
  first: "12.34",
  second: "-7.5",
  models: { "s*": "33.33", "sk*": "7", short: "0.01", portrait: "1000", "re*": "-99.99" } as Prices,
  other: "20"
}
/** `deep` is served by the second provider, the other chat models by the first. */
const markupOf = (id: string): bigint => {
  const provider = id === "deep" ? markups.second : id in chats ? markups.first : markups.other
  const [prefix] = ["sk*", "re*", "s*"].filter((pattern) => id.startsWith(pattern.replace("*", "")))
  return hundredthsOf(markups.models[id] ?? markups.models[prefix ?? ""] ?? provider)
}

/** Writes YAML by hand, because JSON numbers would pass through floating point. */
const flow = (prices: Prices, more = "") =>
  `{${Object.entries(prices)
    .map(([key, value]) => `${key}: ${value}`)
    .join(", ")}${more}}`

const catalogOver = (urls: { readonly first: string; readonly second: string }) => `
markup:
  default: ${markups.other}
  providers: {first: ${markups.first}, second: ${markups.second}}
  models: {${Object.entries(markups.models)
    .map(([id, percent]) => `"${id}": ${percent}`)
    .join(", ")}}
providers:
  first: {adapter: openai-chat, base_url: ${urls.first}/v1, credential: FIRST_KEY}
  second: {adapter: openai-chat, base_url: ${urls.second}/v1, credential: SECOND_KEY}
  painter: {adapter: openai-images, base_url: ${urls.first}/v1, credential: FIRST_KEY}
  farm: {adapter: sandbox}
families:
  A: {sampling: true, max_output_policy: clamp}
models:
${Object.entries(chats)
  .map(([id, { base, long }]) => {
    const tier = long === undefined ? "" : `, long_context: ${flow(long, `, above: ${above}`)}`
    const [one, two] = id === "deep" ? ["second", "first"] : ["first", "second"]
    return `  - id: ${id}
    surface: chat
    family: A
    context_length: 100000
    max_output: 8000
    max_web_searches: 4
    reasoning: [low, high]
    capabilities: [web_search]
    pricing: ${flow(base, tier)}
    routes:
      - {provider: ${two}, model: m, preference: 9, options: {web_search: {search: true}}}
      - {provider: ${one}, model: m, options: {web_search: {search: true}}}`
  })
  .join("\n")}
${Object.entries(images)
  .map(
    ([id, variants]) => `  - id: ${id}
    surface: image
    edit: true
    variants:
${Object.entries(variants)
  .map(([resolution, usd]) => `      - {resolution: ${resolution}, price_usd: ${usd}}`)
  .join("\n")}
    routes: [{provider: painter, model: p}]`
  )
  .join("\n")}
${Object.entries(videos)
  .map(
    ([id, prices]) => `  - id: ${id}
    surface: video
    pricing: ${flow(prices)}
    seconds: {allowed: [3, 7], default: 7}
    routes: [{provider: farm, model: f}]`
  )
  .join("\n")}
`

const gateway = Layer.provideMerge(
  Served.layer(
    Effect.map(Upstreams, ({ first, second }) => ({
      catalog: catalogOver({ first: first.url, second: second.url }),
      env: credentials,
      timings: earlyPolls
    }))
  ),
  upstreams
)

type Rates = Readonly<Record<Kind, bigint>>

/** The prices of one organization. */
const pricesFor = (discount: string) => {
  const sold = (id: string, usd: string) => added(added(nanoOf(usd), markupOf(id)), -hundredthsOf(discount))

  const rates = (id: string, isLong: boolean): Rates => {
    const { base = {}, long } = chats[id] ?? {}
    const tier = isLong ? (long ?? base) : base
    const find = (kind: Kind): string => {
      const own = tier[keyOf(kind)] ?? base[keyOf(kind)]
      return kind === "prompt" || kind === "completion" ? (own ?? "0") : (own ?? find(parents[kind]))
    }
    return {
      prompt: sold(id, find("prompt")),
      completion: sold(id, find("completion")),
      cached_prompt: sold(id, find("cached_prompt")),
      cache_write: sold(id, find("cache_write")),
      cache_write_1h: sold(id, find("cache_write_1h"))
    }
  }
  const search = (id: string) => sold(id, chats[id]?.base["web_search_per_1k_usd"] ?? "0")
  const hasTier = (id: string, tokens: number) => chats[id]?.long !== undefined && tokens > above

  /** `counts` of each kind exclude each other. */
  const charge = (id: string, counts: Readonly<Record<Kind, number>>, searches: number): bigint => {
    const prompt = counts.prompt + counts.cached_prompt + counts.cache_write + counts.cache_write_1h
    const own = rates(id, hasTier(id, prompt))
    const tokens = kinds.reduce((sum, kind) => sum + BigInt(counts[kind]) * own[kind], 0n)
    return ceiling(tokens + BigInt(searches) * search(id) * 1_000n, 1_000_000n)
  }

  const hold = (id: string, bound: number, cap: number, searches: number): bigint => {
    const tiers = [rates(id, false), rates(id, hasTier(id, bound))]
    const most = (of: ReadonlyArray<Kind>) =>
      tiers.flatMap((own) => of.map((kind) => own[kind])).reduce((a, b) => (a > b ? a : b), 0n)
    const input = BigInt(bound) * most(["prompt", "cached_prompt", "cache_write", "cache_write_1h"])
    const total = input + BigInt(cap) * most(["completion"]) + BigInt(searches) * search(id) * 1_000n
    return ceiling(total, 1_000_000n)
  }
  return { sold, rates, search, charge, hold }
}

/** A JSON number of USD as nano-USD. */
const nano = (usd: unknown): bigint => {
  assert.strictEqual(typeof usd, "number")
  const [whole = "0", decimals = ""] = Number(usd).toFixed(9).split(".")
  return BigInt(whole + decimals)
}

const prompt = (tokens: number) => "x".repeat(tokens)

const dialects = [
  {
    path: "/v1/chat/completions",
    bodyOf: (model: string, text: string, more: object) => ({
      model,
      max_tokens: 400,
      messages: [{ role: "user", content: text }],
      usage: { include: true },
      ...more
    })
  },
  {
    path: "/v1/messages",
    bodyOf: (model: string, text: string, more: object) => ({
      model,
      max_tokens: 400,
      messages: [{ role: "user", content: text }],
      ...more
    })
  },
  {
    path: "/v1/responses",
    bodyOf: (model: string, text: string, more: object) => ({ model, max_output_tokens: 400, input: text, ...more })
  }
] as const

const randomUsage = () => {
  const counts = {
    prompt: random.integer(0, 700),
    completion: random.integer(0, 400),
    cached_prompt: random.pick([0, random.integer(0, 700)]),
    cache_write: random.pick([0, random.integer(0, 400)]),
    cache_write_1h: random.pick([0, random.integer(0, 400)])
  }
  const { cache_write: brief, cache_write_1h: hour, cached_prompt: cached, completion: output } = counts
  const total = counts.prompt + cached + brief + hour
  const searches = random.integer(0, 4)
  const reported = {
    prompt_tokens: total,
    completion_tokens: output,
    total_tokens: total + output,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: brief + hour, cache_write_1h_tokens: hour },
    completion_tokens_details: { reasoning_tokens: Math.floor(output / 2) },
    server_tool_use: { web_search_requests: searches }
  }
  return { counts, reported, searches }
}

const replying =
  (usage: Readonly<Record<string, unknown>>): Reply =>
  (response, received) =>
    (isStream(received.body)
      ? sse(chunk({ content: "fine" }), chunk({}, "stop"), event({ ...completion(""), choices: [], usage }), done)
      : json(200, completion("fine", usage)))(response, received)

const short = ["33.33", "-12.5", "100"]
const discounts = hasAllCases ? ["0", "10", "0.01", "-100", "99.99", ...short] : short

withLayer(gateway)(`prices calculated by hand (TEST_SEED=${seed})`, (it) => {
  for (const discount of discounts) {
    it.effect(
      `are those of list, quote, hold, header, usage, ledger, log and statement at a discount of ${discount} %`,
      function* () {
        const { first, second } = yield* Upstreams
        const sql = yield* SqlClient.SqlClient
        const customer = yield* Served.customer({ nanoUsd: 100_000_000_000_000n, rpm: 100_000 })
        const { update } = yield* Organizations
        const organization = yield* update(customer.org, { discount_percent: Number(discount) })
        assert.strictEqual(organization.discount_percent, Number(discount))
        const own = pricesFor(discount)
        let total = 0n

        const listed = JSON.parse((yield* call("/v1/models", { headers: bearer(customer.secret) })).text).data
        const pricingOf = (id: string) => listed.find((model: { id: string }) => model.id === id).pricing
        for (const id of Object.keys(chats)) {
          const pricing = pricingOf(id)
          for (const kind of kinds) {
            assert.strictEqual(nano(pricing[keyOf(kind)]), own.rates(id, false)[kind], `${id} ${kind}`)
            if (pricing.long_context !== undefined)
              assert.strictEqual(nano(pricing.long_context[keyOf(kind)]), own.rates(id, true)[kind], `${id} ${kind}`)
          }
          assert.strictEqual(nano(pricing.web_search_per_1k_usd), own.search(id))
        }

        /** Sends a request that `reply` answers, and compares everything but the hold. Returns the quote and the hold. */
        const pay = Effect.fnUntraced(function* (path: string, body: object, charge: bigint) {
          const quoted = yield* post("/v1/quote")(customer, { endpoint: path, body })
          assert.strictEqual(quoted.status, 200, quoted.text)
          const quote = JSON.parse(quoted.text)
          const answer = yield* post(path)(customer, body)
          assert.strictEqual(answer.status, 200, answer.text)
          const header = answer.headers.get("x-gateway-charge-usd")
          if (!("stream" in body)) assert.strictEqual(header && nanoOf(header), charge, `${path} header`)
          const row = yield* Served.logged(answer.headers.get("x-request-id"))
          assert.strictEqual(row.charge, charge, `${path} log`)
          assert.deepStrictEqual(row.notes, [])
          const [entry] = yield* sql<{ readonly amount: string; readonly held: string }>`
            SELECT amount::text, held::text FROM ledger_entries WHERE hold_id = ${row.holdId ?? ""} AND kind = 'charge'`
          assert.strictEqual(entry?.amount, String(-charge), `${path} ledger`)
          total += charge
          assert.strictEqual(nano(quote.hold_usd), BigInt(entry?.held ?? -1), `${path} quote`)
          return { answer, quote, row, held: BigInt(entry?.held ?? -1) }
        })

        for (const id of Object.keys(chats)) {
          for (const { bodyOf, path } of dialects) {
            for (const stream of [false, true]) {
              const { counts, reported, searches } = randomUsage()
              const isSearching = path === "/v1/chat/completions"
              const more = { ...(stream && { stream }), ...(isSearching && { web_search: true }) }
              const body = bodyOf(id, prompt(random.integer(2_300, 4_000)), more)
              yield* (id === "deep" ? second : first).script(replying(reported))
              const charge = own.charge(id, counts, isSearching ? searches : 0)
              const { answer, held, quote, row } = yield* pay(path, body, charge)
              const { max_output_tokens: cap, prompt_tokens_bound: bound } = quote
              assert.strictEqual(held, own.hold(id, bound, cap, isSearching ? 4 : 0), `${path} ${id} hold`)
              if (isSearching) {
                const last = stream ? (answer.text.match(/data: (\{.*"cost".*\})/)?.[1] ?? "{}") : answer.text
                assert.strictEqual(nano(JSON.parse(last).usage.cost), charge, "usage.cost")
              }
              const explained = yield* explainRequest(OrganizationScope.all, row, [])
              // The list may not be stored yet: then there is no price.
              assert.oneOf(explained.price.price_usd, [charge, null])
            }
          }
        }

        for (const [id, variants] of Object.entries(images)) {
          for (const [resolution, usd] of Object.entries(variants)) {
            const amount = own.sold(id, usd)
            const body = { model: id, prompt: "a boat", resolution }
            yield* first.script(paints(), paints())
            const drawn = yield* pay("/v1/images/generations", body, amount)
            assert.strictEqual(drawn.held, amount)
            const image = `data:image/png;base64,${Buffer.from(png).toString("base64")}`
            yield* pay("/v1/images/edits", { ...body, image }, amount)
          }
          const perImage = nano(pricingOf(id).per_image_usd)
          assert.strictEqual(perImage, own.sold(id, variants["1K"] ?? "0"))
        }

        const films: Array<readonly [id: string, amount: bigint]> = []
        for (const [id, prices] of Object.entries(videos)) {
          for (const seconds of [3, 7]) {
            const [[unit, usd] = ["", "0"]] = Object.entries(prices)
            const sold = own.sold(id, usd)
            assert.strictEqual(nano(pricingOf(id)[unit]), sold)
            const amount = unit === "per_second_usd" ? sold * BigInt(seconds) : sold
            const body = { model: id, prompt: "a boat at sea", seconds: String(seconds) }
            const quoted = yield* post("/v1/quote")(customer, { endpoint: "/v1/videos", body })
            assert.strictEqual(nano(JSON.parse(quoted.text).hold_usd), amount)
            const created = yield* post("/v1/videos")(customer, body)
            assert.strictEqual(created.status, 202, created.text)
            films.push([JSON.parse(created.text).id, amount])
          }
        }
        for (const [film, amount] of films) {
          const over = yield* eventually(
            Effect.map(call(`/v1/videos/${film}`, { headers: bearer(customer.secret) }), ({ text }) =>
              JSON.parse(text)
            ),
            ({ status }) => status === "completed" || status === "failed"
          )
          assert.strictEqual(over.status, "completed")
          assert.strictEqual(nano(over.charge_usd), amount)
          total += amount
        }

        assert.strictEqual(yield* customer.spentInTheEnd, total)
        const month = new Date().toISOString().slice(0, 7)
        const { text } = yield* call(`/v1/statement?month=${month}`, { headers: bearer(customer.secret) })
        assert.strictEqual(nano(JSON.parse(text).total_charge_usd), total)
      },
      180_000
    )
  }

  it.effect("are those by which `ledger verify` checks the charges", function* () {
    yield* assertRatesStored
  })
})
