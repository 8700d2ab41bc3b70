/** `TrafficGateway`: one gateway for all cases, over one host that answers each route as its case says. */

import { Context, Effect, Layer } from "effect"
import * as Gateway from "../../src/Gateway.ts"
import { readSettings } from "../../src/Settings.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { adaptersOf, Providers } from "../../src/services/routing/Provider.ts"
import { type ChatWire, record } from "../contracts/ChatHosts.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { chatWires } from "../providers/ChatWires.ts"
import {
  type Case,
  type ChatWireName,
  type Dialect,
  dialects,
  list,
  mediaWires,
  type On,
  type Reply,
  type Route,
  type Wire,
  wires
} from "./Case.ts"
import { hasReply, plainReply, replyOf } from "./Replies.ts"
import { canSay } from "./Requests.ts"
import { refusedBy, toolNamesOn } from "./VendorRules.ts"

/** Nano-USD per token. Costs are half of it. */
export const prices = {
  prompt: 1_000n,
  completion: 5_000n,
  cached: 100n,
  cache_write: 1_250n,
  cache_write_hour: 2_000n
}

/** A case in one dialect over one wire, whole or streamed. */
export interface Combination {
  readonly of: Case
  readonly dialect: Dialect
  readonly wire: Wire
  readonly stream: boolean
  readonly isNative: boolean
  readonly model: string
  readonly routes: ReadonlyArray<Required<Pick<Route, "upstream">> & Route & { readonly wire: Wire }>
}

const isChatWire = (wire: Wire): wire is ChatWireName => wires.some((name) => name === wire)

/** What reached a host. */
export interface Received extends Fake.Received {
  readonly wire: Wire
  readonly route: number
  readonly text: string
  /** What the vendor refuses of it. */
  readonly refused: ReadonlyArray<string>
}

/** The chat wire of a name. */
export const wireOf = (name: Wire): ChatWire => {
  const wire = chatWires.find(({ adapter }) => adapter === name)
  if (wire === undefined) throw new Error(`no wire ${name}`)
  return wire
}

const natives: Partial<Record<Dialect, Wire>> = { responses: "openai-responses", messages: "anthropic" }

export const isOn = (
  { dialects, native, streamed, wires }: On,
  { dialect, isNative, stream, wire }: Pick<Combination, "dialect" | "isNative" | "stream" | "wire">
): boolean =>
  (dialects?.includes(dialect) ?? true) &&
  (wires?.includes(wire) ?? true) &&
  (streamed ?? stream) === stream &&
  (native ?? isNative) === isNative

const routesOf = (of: Case, wire: Wire): Combination["routes"] => [
  {
    wire,
    upstream: of.upstream ?? { text: "Fine." },
    ...(of.options && { options: of.options }),
    ...(of.route && { route: of.route })
  },
  ...(of.failover ?? []).map((route) => ({ upstream: { text: "Fine." }, ...route, wire: route.wire ?? wire }))
]

const hasFormat = ({ request }: Case) => request?.format !== undefined

const oneOf = (of: Case, wire: Wire): Combination => {
  const routes = routesOf(of, wire)
  return { of, dialect: "api", wire, stream: false, isNative: false, model: of.id, routes }
}

/** Every way to try a case. */
export const combinationsOf = (of: Case): ReadonlyArray<Combination> =>
  of.api === undefined ? chatsOf(of) : [oneOf(of, of.api.adapter)]

const chatsOf = (of: Case): ReadonlyArray<Combination> =>
  wires.flatMap((wire) =>
    dialects.flatMap((dialect) =>
      [false, true].flatMap((stream) => {
        const isNative = natives[dialect] === wire
        const one = { dialect, wire, stream, isNative }
        const routes = routesOf(of, wire)
        const isTried =
          canSay(dialect, of.request ?? {}) &&
          isOn(of.on ?? {}, one) &&
          !(of.except ?? []).some((on) => isOn(on, one)) &&
          routes.every((route) => list(route.upstream).every((reply) => hasReply(reply, route.wire, stream))) &&
          (!hasFormat(of) || wire !== "anthropic")
        const model = `${of.id}.${wire}.${dialect}.${stream ? "streamed" : "whole"}`
        return isTried ? [{ of, ...one, model, routes }] : []
      })
    )
  )

const features = ["tools", "vision", "response_format", "web_search"] as const
const optionsOn = (options: Route["options"], wire: Wire) => options?.[wire] ?? {}

const mediaEntryOf = ({ model, of, routes }: Combination) => ({
  id: model,
  surface: "image",
  edit: true,
  routes: routes.map((route, index) => routeEntry(model, route, index, {})),
  ...of.model
})

const routeEntry = (
  model: string,
  { options, route, wire }: Combination["routes"][number],
  index: number,
  cost: object
) => ({
  provider: wire,
  model: `${model}.${index}`,
  preference: index + 1,
  options: optionsOn(options, wire),
  ...cost,
  ...route
})

const entryOf = ({ model, of, routes }: Combination) => {
  const all = routes.map(({ wire }) => wireOf(wire).has.features)
  const hasAll = (feature: (typeof all)[number][number]) => all.every((has) => has.includes(feature))
  return {
    id: model,
    surface: "chat",
    family: hasAll("sampling") ? "sampling" : "plain",
    context_length: 200_000,
    max_output: 8_000,
    pricing: pricing(1),
    reasoning: ["low", "medium", "high"],
    capabilities: features.filter((feature) => feature !== "web_search" && hasAll(feature)),
    image_tokens: 1_000,
    created: "2026-01-01",
    routes: routes.map((route, index) => routeEntry(model, route, index, { cost: pricing(2) })),
    ...of.model
  }
}

const pricing = (divisor: number) => {
  const usd = (price: bigint) => Number(price) / 1_000 / divisor
  return {
    prompt_per_1m_usd: usd(prices.prompt),
    completion_per_1m_usd: usd(prices.completion),
    cached_prompt_per_1m_usd: usd(prices.cached),
    cache_write_per_1m_usd: usd(prices.cache_write),
    cache_write_1h_per_1m_usd: usd(prices.cache_write_hour)
  }
}

const catalogOf = (url: string, all: ReadonlyArray<Combination>) =>
  JSON.stringify({
    providers: Object.fromEntries(
      [...wires, ...mediaWires].map((wire) => {
        const basePath = isChatWire(wire) ? wireOf(wire).basePath : "/v1"
        return [wire, { adapter: wire, base_url: `${url}${basePath}`, credential: "HOST_KEY" }]
      })
    ),
    families: {
      sampling: { sampling: true, max_output_policy: "clamp" },
      plain: { sampling: false, max_output_policy: "clamp" }
    },
    models: all.map((one) => (isChatWire(one.wire) ? entryOf(one) : mediaEntryOf(one)))
  })

/** What every host received, by the model asked for, in order. */
export class Hosts extends Context.Tag("test/traffic/Hosts")<
  Hosts,
  { readonly url: string; readonly received: (model: string) => ReadonlyArray<Received> }
>() {}

/** The route's model stands in the body as JSON or as a form, or in Gemini's path. */
const upstreamModel = ({ body, path }: Fake.Received, text: string): string => {
  const { model } = record(body)
  if (typeof model === "string") return model
  const [, inForm] = /name="model"\r\n\r\n(.*)\r\n/.exec(text) ?? []
  return inForm ?? decodeURIComponent(/\/models\/(.*):\w+/.exec(path)?.[1] ?? "")
}

const hosts = (all: ReadonlyArray<Combination>) =>
  Layer.scoped(
    Hosts,
    Effect.gen(function* () {
      const byModel = new Map(all.map((one) => [one.model, one]))
      const received = new Map<string, Array<Received>>()
      const answer = (request: Fake.Received) => {
        const { body } = request
        const text = request.bytes.toString("utf8")
        const named = upstreamModel(request, text)
        const dot = named.lastIndexOf(".")
        const one = byModel.get(named.slice(0, dot))
        const index = Number(named.slice(dot + 1))
        const route = one?.routes[index]
        if (one === undefined || route === undefined) return undefined
        const { wire } = route
        const before = received.get(one.model) ?? []
        const refused = isChatWire(wire)
          ? refusedBy(wire, body, text, { isNative: natives[one.dialect] === wire, ...one.of })
          : []
        received.set(one.model, [...before, { ...request, wire, route: index, text, refused }])
        const replies: ReadonlyArray<Reply> = list(route.upstream)
        const reply = replies[before.filter((earlier) => earlier.route === index).length] ?? replies.at(-1) ?? {}
        if (!isChatWire(wire)) return plainReply(reply[wire])
        const host = wireOf(wire)
        if (refused.length > 0) return replyOf(host, wire, { refuse: "request" }, [], false)
        return replyOf(host, wire, reply, toolNamesOn(wire, body), host.wantsStream(request))
      }
      const { url } = yield* Fake.serving((response, request) => {
        const reply = answer(request)
        if (reply === undefined) {
          response.writeHead(599).end()
          return
        }
        response.writeHead(reply.status, { "content-type": reply.type, ...reply.headers })
        if (!reply.cut) response.end(reply.text)
        else response.write(reply.text, () => response.socket?.destroy())
      })
      return { url, received: (model) => received.get(model) ?? [] }
    })
  ).pipe(Layer.orDie)

/** The catalog's text, and why models are not in it. */
class TrafficCatalog extends Context.Tag("test/traffic/TrafficCatalog")<
  TrafficCatalog,
  { readonly text: string; readonly invalid: ReadonlyMap<string, string> }
>() {}

/** What the gateway would say of the catalog, by the model at fault. */
const findInvalid = (text: string, all: ReadonlyArray<Combination>) =>
  Effect.gen(function* () {
    const settings = yield* Effect.orDie(readSettings({}))
    const adapters = adaptersOf(yield* Effect.provide(Providers, Gateway.providers(settings)))
    const source = { file: "catalog.yaml", text }
    yield* Catalog.make({ source, environment: credentials, sandbox: false, adapters })
    return new Map<string, string>()
  }).pipe(
    Effect.catchAll(({ problems }) => {
      const named = problems.map(({ key, message }) => {
        const model = all[Number(/^models\[(\d+)\]/.exec(key)?.[1])]?.model
        return [model ?? "", `${key}: ${message}`] as const
      })
      return Effect.succeed(new Map(named))
    })
  )

/** A case that the catalog refuses fails alone. */
const catalog = (all: ReadonlyArray<Combination>) =>
  Layer.effect(
    TrafficCatalog,
    Effect.gen(function* () {
      const { url } = yield* Hosts
      const invalid = yield* findInvalid(catalogOf(url, all), all)
      const valid = all.filter(({ model }) => !invalid.has(model))
      return { text: catalogOf(url, valid), invalid }
    })
  )

const credentials = { HOST_KEY: "sk-host" }

/** A customer of the gateway, whose catalog has a model for every combination. */
export class TrafficGateway extends Context.Tag("test/traffic/TrafficGateway")<
  TrafficGateway,
  Served.Customer & Pick<TrafficCatalog["Type"], "invalid">
>() {}

const customer = Effect.all([Served.customer({ nanoUsd: 1_000_000_000_000n, rpm: 1_000_000 }), TrafficCatalog]).pipe(
  Effect.map(([payer, { invalid }]) => ({ ...payer, invalid }))
)

export const layer = (all: ReadonlyArray<Combination>) =>
  Layer.effect(TrafficGateway, customer).pipe(
    Layer.provideMerge(
      Served.layer(
        Effect.map(TrafficCatalog, ({ text }) => ({
          catalog: text,
          env: { ...credentials, LOG_LEVEL: "none", FETCH_ALLOW: "127.0.0.1" }
        }))
      )
    ),
    Layer.provideMerge(catalog(all)),
    Layer.provideMerge(hosts(all))
  )
