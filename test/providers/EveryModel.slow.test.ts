import { Context, Effect, Layer } from "effect"
import type { ParamField } from "../../src/domain/ListedModel.ts"
import type { ModelList } from "../../src/http/models/ModelSchema.ts"
import { type Account, openAccount } from "../harness/client/Account.ts"
import { bearer, call } from "../harness/client/HttpCalls.ts"
import { builtIn } from "../harness/fixtures/Catalogs.ts"
import { dataUrl, png } from "../harness/fixtures/TinyMedia.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as Vendor from "./Vendors.ts"

const { models, providers } = Vendor.read(builtIn)

class Customer extends Context.Tag("test/Customer")<
  Customer,
  { readonly account: Account; readonly listed: (typeof ModelList.Type)["data"] }
>() {}

const customer = Layer.effect(
  Customer,
  Effect.gen(function* () {
    const account = yield* openAccount({ nanoUsd: 1_000_000_000_000_000n, rpm: 1_000_000 })
    const { text } = yield* call("/v1/models", { headers: bearer(account.secret) })
    const { data }: typeof ModelList.Type = JSON.parse(text)
    return { account, listed: data }
  })
)

const paths = { chat: "/v1/chat/completions", image: "/v1/images/generations", video: "/v1/videos" }

type Fields = Readonly<Record<string, unknown>>

const reference: Fields = { image: [dataUrl(png, "image/png")] }

/** Returns the values of a field to test: every choice, or the default and the limits. */
const valuesOf = ({ default: usual, max, min, options, type }: ParamField): ReadonlyArray<unknown> => {
  if (options !== undefined) return options
  if (type === "boolean") return [true, false]
  if (type === "image") return [reference["image"]]
  if (type === "text") return ["END"]
  const known = [...new Set([usual, min, max])].filter((value) => value !== undefined)
  return known.length === 0 ? [7] : known
}

/** Only some routes support each shape. */
const shapes: ReadonlySet<string> = new Set(["size", "aspect_ratio"])

/** Combinations: no field, each field alone with each value, and all fields except shapes with their last values. */
const requestsOf = (params: ReadonlyArray<ParamField>): ReadonlyArray<Fields> => [
  {},
  ...params.flatMap((param) => valuesOf(param).map((value) => ({ [param.key]: value }))),
  Object.fromEntries(params.filter(({ key }) => !shapes.has(key)).map((param) => [param.key, valuesOf(param).at(-1)]))
]

let orders = 0

/** Sends a request and returns the upstream calls. */
const sent = Effect.fnUntraced(function* ({ id, surface }: Vendor.ModelEntry, fields: Fields, vendor?: string) {
  const { account } = yield* Customer
  const number = ++orders
  const text = Vendor.order(number, vendor)
  const chatRequest = surface === "chat" ? { messages: [{ role: "user", content: text }] } : { prompt: text }
  const answer = yield* call(paths[surface], {
    body: { model: id, ...chatRequest, ...fields },
    headers: { ...bearer(account.secret), "content-type": "application/json" }
  })
  const at = `${id} ${JSON.stringify(fields).slice(0, 80)}: ${answer.text.slice(0, 200)}`
  assert.strictEqual(answer.status, surface === "video" ? 202 : 200, at)
  return { calls: (yield* Vendor.Vendors).of(number), answer: JSON.parse(answer.text), at }
})

/** Checks that the call has the route's vendor, key, path and model. */
const assertReached = (
  { surface }: Vendor.ModelEntry,
  route: Vendor.RouteEntry,
  call: Vendor.Asked | undefined,
  fields: Fields,
  at: string
) => {
  const vendor = providers[route.provider]
  if (vendor === undefined || call === undefined) return assert.fail(`${at}: nobody was asked`)
  const { model, path } = Vendor.target(vendor.adapter, surface, route, "image" in fields)
  const base = new URL(vendor.base_url).pathname.replace(/\/$/, "")
  assert.deepStrictEqual([call.method, call.path], ["POST", `/${route.provider}${base}${path}`], at)
  if (model !== undefined) assert.strictEqual(Vendor.modelIn(call), model, at)
  const secret = Vendor.secretOf(vendor.credential)
  assert.isTrue(
    Object.values(call.headers).some((header) => String(header).includes(secret)),
    `${at}: without ${vendor.credential}`
  )
}

const assertServed = ({ surface }: Vendor.ModelEntry, answer: Fields, fields: Fields, at: string) => {
  const text = JSON.stringify(answer)
  if (surface === "chat") assert.include(text, '"content":"fine"', at)
  else if (surface === "video") assert.match(text, /"id":"vid_/, at)
  else assert.match(text, fields["response_format"] === "b64_json" ? /"b64_json":"/ : /"url":"http/, at)
}

const gateway = customer.pipe(Layer.provideMerge(Vendor.gateway(builtIn)))

withLayer(gateway)("the built-in catalog", (it) => {
  it.effect("lists 24 chat, 14 image and 7 video models, each with fields to tune it by", function* () {
    const { listed } = yield* Customer
    assert.deepStrictEqual(
      listed.map(({ id }) => id),
      models.map(({ id }) => id)
    )
    const count = (surface: string) => listed.filter((model) => model.surface === surface).length
    assert.deepStrictEqual([count("chat"), count("image"), count("video")], [24, 14, 7])
    for (const { id, params } of listed) assert.isAbove(params.length, 0, id)
  })

  for (const model of models) {
    const needed = model.reference_image === "required" ? reference : {}

    it.effect(`${model.id}: whatever its params offer reaches its first vendor`, function* () {
      const { listed } = yield* Customer
      const params = listed.find(({ id }) => id === model.id)?.params ?? []
      const [first] = model.routes
      if (first === undefined) return assert.fail("no route")
      yield* Effect.forEach(
        requestsOf(params),
        Effect.fnUntraced(function* (tried) {
          const fields = { ...needed, ...tried }
          const { answer, at, calls } = yield* sent(model, fields)
          assert.lengthOf(calls, 1, at)
          const isShaped = Object.keys(tried).some((key) => shapes.has(key))
          const route = model.routes.find(({ provider }) => isShaped && provider === calls[0]?.provider) ?? first
          assertReached(model, route, calls[0], fields, at)
          assertServed(model, answer, fields, at)
        }),
        { concurrency: 4, discard: true }
      )
    })

    it.effect(`${model.id}: each of its vendors serves it when the others do not`, function* () {
      for (const [index, route] of model.routes.entries()) {
        const { answer, at, calls } = yield* sent(model, needed, route.provider)
        assert.deepStrictEqual(
          calls.map(({ provider }) => provider),
          model.routes.slice(0, index + 1).map(({ provider }) => provider),
          at
        )
        assertReached(model, route, calls.at(-1), needed, at)
        assertServed(model, answer, needed, at)
      }
    })
  }
})
