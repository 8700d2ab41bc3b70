import { Deferred, Effect, Redacted, type Scope } from "effect"
import type { Route } from "../../../src/domain/Model.ts"
import * as Anthropic from "../../../src/providers/anthropic/Anthropic.ts"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import { answered, type Harness, type Host, type Weather } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { errors, isError, record, understood, wire } from "./Wire.ts"

export const secret = "sk-ant-upstream-secret"

export const routeTo = (baseUrl: string, options: Route["options"] = {}): Route => ({
  id: "ours@fake",
  provider: { name: "fake", adapter: "anthropic", baseUrl, credential: Redacted.make(secret), headers: {} },
  model: "claude-model-1",
  preference: 1,
  weight: 1,
  capabilities: undefined,
  cost: undefined,
  options
})

export const wantsStream = (received: Fake.Received) => record(received.body).stream === true

const badWeather = (weather: Exclude<Weather, keyof typeof errors>): Fake.Reply => {
  const { body, opening, output } = wire({ content: "never whole", finish: "stop" })
  switch (weather) {
    case "page":
      return Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>")
    case "empty":
      return Fake.text(200, "application/json", "")
    case "error inside":
      return Fake.json(200, { type: "error", error: { type: "api_error", message: "boom" } })
    case "garbage":
      return (response, received) =>
        wantsStream(received)
          ? Fake.sse('event: message_start\ndata: {"type":"mess\n\n', ...wire({ finish: "stop" }).end)(
              response,
              received
            )
          : Fake.text(200, "application/json", '{"content":[{"type')(response, received)
    case "cut answer":
      return Fake.steps({ type: "application/json" }, JSON.stringify(body).slice(0, 40), Fake.cut)
    default:
      return Fake.sse(opening, ...output, Fake.cut)
  }
}

const failed = (weather: keyof typeof errors): Fake.Reply => {
  const { error, status } = errors[weather]
  const headers = weather === "limit" ? { "retry-after": "7" } : {}
  return Fake.json(status, { type: "error", error, request_id: "req_1" }, headers)
}

/** A host of our own over a fake, which other things can be made of too. */
export const hostOver = (fake: Fake.FakeUpstream): Host => ({
  route: routeTo(fake.url),
  understood: Effect.map(fake.received, ({ body }) => understood(body)),
  answers: (answer) => {
    const { body, end, opening, output } = wire(answer)
    return fake.script((response, received) =>
      wantsStream(received)
        ? Fake.sse(opening, ...output, ...end)(response, received)
        : Fake.json(200, body)(response, received)
    )
  },
  meets: (weather) => fake.script(isError(weather) ? failed(weather) : badWeather(weather)),
  holds: (answer) =>
    Effect.gen(function* () {
      const { body, end, opening, output } = wire(answer)
      const gate = yield* Deferred.make<void>()
      const gone = yield* Deferred.make<void>()
      const [start = "", first = "", ...rest] = output
      yield* fake.script((response, received) => {
        response.on("close", () => Deferred.unsafeDone(gone, received.closed))
        return wantsStream(received)
          ? Fake.sse(opening, start, first, Deferred.await(gate), ...rest, ...end)(response, received)
          : Fake.steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify(body))(response, received)
      })
      return { release: Effect.asVoid(Deferred.succeed(gate, undefined)), gone: Deferred.await(gone) }
    })
})

export const ownHost: Effect.Effect<Host, never, Scope.Scope> = Effect.map(Fake.make, hostOver)

export const layer = Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 })

export const has = { reasoning: true, schema: false, stop: true, cached: true }
export const toldStops = (stops: ReadonlyArray<string>) => stops.filter((stop) => stop.trim() !== "")

export const own: Harness = {
  name: "anthropic on our own fake",
  make: Anthropic.make,
  upstream: layer,
  host: ownHost,
  holds: true,
  weathers: [...answered, "page", "garbage", "empty", "error inside", "cut answer", "cut stream"],
  has,
  toldStops,
  withholds: true
}
