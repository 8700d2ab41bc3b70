import { Effect, Predicate } from "effect"
import { hash } from "../harness/fixtures/Random.ts"
import { png } from "../harness/fixtures/TinyMedia.ts"
import * as Upstream from "../harness/upstream/FakeUpstream.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import type { Service } from "./History.ts"
import { type Account, accounts } from "./Schedule.ts"

/** Faults of an account's answers; those of its connections are the proxy's. */
export type Weather = "status" | "break" | "slow" | "hang"

const statuses = [429, 500, 502, 503] as const
const words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]

/** Every request's prompt names it, at a length that is the same for all. */
export const promptOf = (n: number) => `order ${String(n).padStart(9, "0")}`
const orderIn = (text: string) => Number(/order (\d{9})/.exec(text)?.[1] ?? -1)

/** The usage that a provider reports: no two requests cost the same. */
export const usageOf = (n: number) => {
  const usage = { prompt_tokens: (n % 1_000) + 1, completion_tokens: Math.floor(n / 1_000) + 1 }
  return { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens }
}

export const contentOf = (n: number) =>
  `served ${n}${words
    .slice(0, hash(`words ${n}`) % (words.length + 1))
    .map((word) => ` ${word}`)
    .join("")}`

const chunksOf = (n: number) => contentOf(n).split(/(?= )/)

/** The fate of a render is the request's own, whatever the weather. */
const fateOf = (account: string, n: number): RenderFarm.Fate => {
  const roll = hash(`render ${account} ${n}`) % 20
  return {
    submit: roll === 0 ? "refused" : roll === 1 ? "lost" : "taken",
    polls: 1 + (roll % 2),
    end: roll === 2 || roll === 3 ? "runner" : "clip"
  }
}

const head = (n: number) => ({ id: `up-${n}`, created: 1, model: "hush" })

const completionOf = (n: number) => ({
  ...head(n),
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: contentOf(n) }, finish_reason: "stop" }],
  usage: usageOf(n)
})

const chunk = (n: number, delta: object, finish: string | null = null) =>
  Upstream.event({
    ...head(n),
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish }]
  })

const streamOf = (n: number, isBroken: boolean): ReadonlyArray<Upstream.Step> => {
  const deltas = chunksOf(n).flatMap((content) => [chunk(n, { content }), Effect.sleep("15 millis")])
  const usage = Upstream.event({ ...head(n), object: "chat.completion.chunk", choices: [], usage: usageOf(n) })
  return isBroken ? [...deltas.slice(0, 3), Upstream.cut] : [...deltas, chunk(n, {}, "stop"), usage, Upstream.done]
}

const imageOf = (n: number) => ({
  created: 1,
  data: [{ b64_json: Buffer.concat([png, Buffer.from(promptOf(n))]).toString("base64") }]
})

const isStreaming = (body: unknown) => Predicate.isRecord(body) && body["stream"] === true

const replyTo = (kind: "chat" | "image", n: number, received: Upstream.Received, isBroken: boolean): Upstream.Reply => {
  if (kind === "chat" && isStreaming(received.body)) return Upstream.sse(...streamOf(n, isBroken))
  const text = JSON.stringify(kind === "chat" ? completionOf(n) : imageOf(n))
  return isBroken
    ? Upstream.steps({ type: "application/json" }, text.slice(0, text.length / 2), Upstream.cut)
    : Upstream.text(200, "application/json", text)
}

/** Two accounts with a vendor of chats and images, and two with one of videos; each may have weather. */
export const make = Effect.fnUntraced(function* (options: { readonly seed: string; readonly now: () => number }) {
  const { now, seed } = options
  const weather = new Map<Account, Weather>()
  const services: Array<Service> = []
  /** Most requests are hit while there is weather, not all. */
  const faultOf = (account: Account, n: number) =>
    hash(`${seed} ${account} ${n}`) % 10 < 7 ? weather.get(account) : undefined
  const note = (service: Omit<Service, "at">) => services.push({ ...service, at: now() })
  const accountOf = (path: string): Account => (path.startsWith("/second/") ? "second" : "first")

  const vendor = yield* Upstream.serving(async (response, received) => {
    const kind = received.path.endsWith("/chat/completions") ? "chat" : "image"
    const account = accountOf(received.path)
    const n = orderIn(received.bytes.toString("utf8"))
    const fault = faultOf(account, n)
    note({ n, account, kind, fault })
    await Effect.runPromise(Effect.sleep(5 + (hash(`wait ${n}`) % 60)))
    if (fault === "hang") return
    if (fault === "slow") await Effect.runPromise(Effect.sleep(500 + (hash(`slow ${n}`) % 1_500)))
    const status = statuses[hash(`status ${n}`) % statuses.length] ?? 500
    const reply =
      fault === "status"
        ? Upstream.json(status, { error: { message: `hush ${n}` } }, status === 429 ? { "retry-after": "1" } : {})
        : replyTo(kind, n, received, fault === "break")
    await reply(response, received)
  })

  const farm = yield* RenderFarm.make({
    fate: (account, prompt) => {
      const n = orderIn(prompt)
      const fate = fateOf(account, n)
      const stormy = accounts.find((name) => name === account)
      const fault = stormy === undefined ? undefined : faultOf(stormy, n)
      if (fault === "status" && fate.submit === "taken") return { ...fate, submit: "refused" }
      return fault === "break" && fate.submit === "taken" ? { ...fate, submit: "lost" } : fate
    },
    before: ({ account: name, prompt, step }) => {
      const n = orderIn(prompt)
      const account = accounts.find((one) => one === name) ?? "first"
      const fault = faultOf(account, n)
      const { submit } = fateOf(account, n)
      if (step === "submit")
        note({ n, account, kind: "video", fault: fault ?? (submit === "taken" ? undefined : submit) })
      if (fault === "hang") return Effect.never
      return fault === "slow" ? Effect.sleep("1 second") : Effect.void
    }
  })

  return { vendorUrl: vendor.url, farmUrl: farm.url, weather, services }
})

export type Providers = Effect.Effect.Success<ReturnType<typeof make>>
