import { LLMock, type MockServerOptions } from "@copilotkit/aimock"
import { Effect, Predicate, Redacted, type Scope } from "effect"
import type { Route, RouteOptions } from "../../src/domain/Model.ts"
import { Upstream } from "../../src/providers/client/Upstream.ts"
import type { Provider } from "../../src/services/routing/Provider.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import {
  type Answer,
  type Fault,
  faults,
  type Harness,
  type Host,
  type Refusal,
  refusals,
  type Understood,
  type WireFeatures
} from "./ChatHarness.ts"

/** An answer on a wire: whole, and as the events of a stream in three parts. */
export interface EncodedAnswer {
  readonly body: unknown
  readonly opening: ReadonlyArray<string>
  readonly output: ReadonlyArray<string>
  readonly end: ReadonlyArray<string>
}

/** How a call stands on a wire. */
export interface RawCall {
  /** Whether its arguments are a JSON text, which may come in pieces. */
  readonly isText: boolean
  /** An answer with one call of `f`, with the id `call_a` and these arguments as they are. */
  readonly answer: (given: unknown) => { readonly body: unknown; readonly events: ReadonlyArray<string> }
}

interface InsideError {
  readonly body: unknown
  readonly event: string
}

/** A response without a stream. */
interface Refused {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

type Fixture = Omit<Parameters<LLMock["addFixture"]>[0], "match">

/** The words for aimock, an independent fake. */
export interface Aimock {
  readonly model?: string
  /** How an answer ends, and its counts. */
  readonly describe: (answer: Answer) => object
  readonly refuse: (refusal: Refusal) => Fixture
  /** What it can do less than the wire. */
  readonly lacks?: Partial<WireFeatures>
}

/** A vendor's wire as its host speaks it. */
export interface ChatWire {
  readonly adapter: string
  readonly make: Effect.Effect<Provider, never, Upstream>
  readonly model: string
  /** Before the paths of the wire, such as `/v1`. */
  readonly basePath: string
  readonly has: WireFeatures
  /** Those of the route with which the wire can do most. */
  readonly options?: RouteOptions
  readonly sentStops?: (stops: ReadonlyArray<string>) => ReadonlyArray<string>
  readonly wantsStream: (received: Fake.Received) => boolean
  readonly understand: (received: Fake.Received) => Understood
  readonly encode: (answer: Answer) => EncodedAnswer
  /** On a wire with tools. */
  readonly rawCall?: RawCall
  readonly refuse: (refusal: Refusal) => Refused
  /** An error in the place of an answer with a good status, and as an event. */
  readonly errorInside: InsideError
  /** The same of a host that counts what failed. */
  readonly countedError?: (answer: Answer) => InsideError
  readonly aimock?: Aimock
}

export const secret = "sk-upstream-secret"
export const layer = Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 })

export const record = (value: unknown): Record<PropertyKey, unknown> => (Predicate.isRecord(value) ? value : {})
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
export const records = (value: unknown) => list(value).map(record)
export const string = (value: unknown): string => (typeof value === "string" ? value : "")
export const text = (content: unknown): string =>
  typeof content === "string"
    ? content
    : records(content)
        .map((part) => string(part.text))
        .join("")
/** What a stream tells in two pieces. */
export const halves = (whole: string): ReadonlyArray<string> => [whole.slice(0, 5), whole.slice(5)]
export const choiceOf = (choice: unknown, name: (of: Record<PropertyKey, unknown>) => unknown) => {
  if (choice === "auto" || choice === "none" || choice === "required" || choice === undefined) return choice
  return { name: string(name(record(choice))) }
}
export const bodyWantsStream = ({ body }: Fake.Received): boolean => record(body).stream === true

export const routeTo = (
  { adapter, basePath, model }: ChatWire,
  origin = "http://host.test",
  options: Route["options"] = {}
): Route => ({
  id: "ours@fake",
  provider: { name: "fake", adapter, baseUrl: origin + basePath, credential: Redacted.make(secret), headers: {} },
  model,
  preference: 1,
  weight: 1,
  capabilities: undefined,
  cost: undefined,
  options
})

/** One reply for a call in one piece, another for a stream. */
const either =
  ({ wantsStream }: ChatWire, whole: Fake.Reply, stream: Fake.Reply): Fake.Reply =>
  (response, received) =>
    (wantsStream(received) ? stream : whole)(response, received)

const replyOf = (wire: ChatWire, answer: Answer): Fake.Reply => {
  const { body, end, opening, output } = wire.encode(answer)
  return either(wire, Fake.json(200, body), Fake.sse(...opening, ...output, ...end))
}

const isRefusal = (fault: Fault): fault is Refusal => refusals.some((refusal) => refusal === fault)

const faultyReply = (wire: ChatWire, fault: Fault): Fake.Reply => {
  if (isRefusal(fault)) {
    const { body, headers, status } = wire.refuse(fault)
    const json = Fake.json(status, body, headers)
    return status === 200 ? either(wire, json, Fake.sse(Fake.event(body))) : json
  }
  const { body, end, opening, output } = wire.encode({ content: "never whole", finish: "stop" })
  const start = JSON.stringify(body)
  switch (fault) {
    case "page":
      return Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>")
    case "empty":
      return Fake.text(200, "application/json", "")
    case "error inside":
      return either(wire, Fake.json(200, wire.errorInside.body), Fake.sse(wire.errorInside.event))
    case "deep error": {
      const error = { error: Fake.deep }
      return either(wire, Fake.json(200, error), Fake.sse(...opening, ...output, Fake.event(error), Effect.never))
    }
    case "garbage":
      return either(
        wire,
        Fake.text(200, "application/json", start.slice(0, 20)),
        Fake.sse(`data: ${start.slice(0, 20)}\n\n`, ...end)
      )
    case "cut answer":
      return Fake.steps({ type: "application/json" }, start.slice(0, 40), Fake.cut)
    default:
      return Fake.sse(...opening, ...output, Fake.cut)
  }
}

/** A host of the wire over a fake. */
export const hostOver = (wire: ChatWire, fake: Fake.FakeUpstream): Host => ({
  route: routeTo(wire, fake.url, wire.options),
  received: Effect.map(fake.received, wire.understand),
  answer: (answer) => fake.script(replyOf(wire, answer)),
  fail: (fault) => fake.script(faultyReply(wire, fault)),
  hold: (answer) => {
    const { body, end, opening, output } = wire.encode(answer)
    const [first = ""] = halves(answer.content ?? "")
    const shown = output.findIndex((event) => event.includes(`"${first}"`)) + 1
    const [before, after] = [output.slice(0, shown), output.slice(shown)]
    return Fake.hold(fake.script, (gate) =>
      either(
        wire,
        Fake.steps({ type: "application/json" }, gate, JSON.stringify(body)),
        Fake.sse(...opening, ...before, gate, ...after, ...end)
      )
    )
  }
})

/** The same in the words of aimock, behind a relay that keeps what was sent. It cannot wait. */
const aimockHost = (wire: ChatWire, { describe, model, refuse }: Aimock): Effect.Effect<Host, never, Scope.Scope> =>
  Effect.gen(function* () {
    const mock = yield* makeMock(secret)
    const fake = yield* Fake.serving(Fake.relay(mock.url))
    const script = (fixture: Fixture) =>
      Effect.sync(() => mock.clearFixtures().addFixture({ match: { predicate: () => true }, ...fixture }))
    const route = routeTo(wire, fake.url, wire.options)
    return {
      route: model === undefined ? route : { ...route, model },
      received: Effect.map(fake.received, wire.understand),
      answer: (answer) => {
        const { content = "", reasoning, toolCalls } = answer
        const described = { ...describe(answer), ...(reasoning && { reasoning }) }
        const response = toolCalls ? { ...described, toolCalls: [...toolCalls] } : { ...described, content }
        return script({ response, chunkSize: 4 })
      },
      fail: (fault) => {
        if (isRefusal(fault)) return script(refuse(fault))
        if (fault === "garbage") return script({ response: { content: "unseen" }, chaos: { malformedRate: 1 } })
        const response = { content: "never whole, whatever comes" }
        return script({ response, chunkSize: 4, latency: 20, truncateAfterChunks: 6 })
      }
    }
  })

/** The hosts of a wire that its adapter is held to. */
export const harnesses = (wire: ChatWire): ReadonlyArray<Harness> => {
  const { adapter, aimock, has, make, sentStops } = wire
  const common = { make, upstream: layer, sentStops }
  const host = Effect.map(Fake.make, (fake) => hostOver(wire, fake))
  const own: Harness = { ...common, name: `${adapter} on our own fake`, host, holds: true, faults, has }
  if (aimock === undefined) return [own]
  const independent: Harness = {
    ...common,
    name: `${adapter} on aimock`,
    host: aimockHost(wire, aimock),
    holds: false,
    faults: [...refusals, "garbage", "cut stream"],
    has: { ...has, cached: false, ...aimock.lacks }
  }
  return [own, independent]
}

/** An upstream that others wrote, which takes this key alone. */
export const makeMock = (key: string, options: MockServerOptions = {}) =>
  Effect.acquireRelease(
    Effect.promise(() => LLMock.create({ port: 0, auth: { apiKeys: [key] }, ...options })),
    (made) => Effect.promise(() => made.stop())
  )
