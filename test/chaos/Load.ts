import { Predicate } from "effect"
import * as Random from "../harness/fixtures/Random.ts"
import * as Client from "./Client.ts"
import type { Call, Operation, Outcome } from "./History.ts"
import { promptOf } from "./Providers.ts"
import { type Side, sides } from "./Schedule.ts"
import type { Customer, World } from "./World.ts"

/** A request's output cap; it makes every chat's hold one of a kind. */
export const maxTokensOf = (n: number) => 100 + n

/** Those of an unpaid-for request are repeated, as clients do. */
const attempts = 3

interface Plan {
  readonly operation: Operation
  readonly side: Side
  readonly method: "GET" | "POST"
  readonly path: string
  readonly body?: unknown
  readonly leavesAfter?: number | undefined
  readonly key?: string
  readonly repeats?: number
  readonly video?: { readonly id: string; readonly organization: number }
}

const times = (count: number, operation: Operation) => Array.from({ length: count }, () => operation)

const operations: readonly [Operation, ...ReadonlyArray<Operation>] = [
  "chat",
  ...times(6, "chat"),
  ...times(6, "stream"),
  ...times(3, "image"),
  "video",
  ...times(2, "credits"),
  "videos",
  "video-read"
]

const idIn = (outcome: Outcome) =>
  outcome.kind === "answer" && outcome.status === 202 && Predicate.isRecord(outcome.body)
    ? String(outcome.body["id"])
    : undefined

const isWorthRepeating = (outcome: Outcome) =>
  outcome.kind !== "answer" || outcome.status >= 500 || outcome.status === 409

const chatBody = (n: number, stream: boolean) => ({
  model: "chat",
  messages: [{ role: "user", content: promptOf(n) }],
  max_tokens: maxTokensOf(n),
  ...(stream ? { stream, stream_options: { include_usage: true } } : {})
})

/** Clients that ask one thing after the other, as the seed says, until they are told to stop. */
export const make = (world: World, options: { readonly seed: string; readonly now: () => number }) => {
  const { now, seed } = options
  const calls: Array<Call> = []
  const videos: Array<{ readonly id: string; readonly organization: number }> = []
  let last = 0
  const stopping = new AbortController()

  /** The request number is in its prompt; a repeated request must say the same, so it keeps the first one's. */
  const call = async (customer: Customer, plan: Plan, n: number) => {
    const { body, key, leavesAfter, method, operation, path, repeats, side, video } = plan
    const sentAt = now()
    const outcome = await Client.send({
      url: world.gateways[side].url,
      path,
      method,
      body,
      leavesAfter,
      headers: {
        authorization: `Bearer ${customer.secret}`,
        "x-request-id": `chaos-${n}`,
        ...(key === undefined ? {} : { "idempotency-key": key })
      }
    })
    const id = operation === "video" ? idIn(outcome) : undefined
    if (id !== undefined) videos.push({ id, organization: customer.organization })
    calls.push({
      n,
      operation,
      organization: customer.organization,
      keyId: customer.keyId,
      side,
      sentAt,
      endedAt: now(),
      outcome,
      ...(repeats === undefined ? {} : { repeats }),
      ...(video === undefined ? {} : { video })
    })
    return outcome
  }

  /** An image or a video; with a key it is repeated until it has an answer, or asked for twice at once. */
  const paidOnce = async (random: Random.Random, customer: Customer, operation: "image" | "video") => {
    const n = ++last
    const body = {
      model: operation,
      prompt: promptOf(n),
      ...(operation === "image" ? { response_format: random.pick(["url", "b64_json"]) } : { seconds: 4 })
    }
    const path = operation === "image" ? "/v1/images/generations" : "/v1/videos"
    const hasKey = random.chance(0.6)
    const leaves = random.chance(0.1) ? random.integer(0, 300) : undefined
    const plan = (side: Side): Plan => ({
      operation,
      side,
      method: "POST",
      path,
      body,
      ...(hasKey ? { key: `key-${n}` } : {})
    })
    const isTwin = hasKey && random.chance(0.2)
    const first = call(customer, { ...plan(random.pick(sides)), leavesAfter: leaves }, n)
    const twin = isTwin ? call(customer, { ...plan(random.pick(sides)), repeats: n }, ++last) : undefined
    let outcome = await first
    await twin
    if (!hasKey) return
    for (let attempt = 1; attempt < attempts && isWorthRepeating(outcome) && !stopping.signal.aborted; attempt++) {
      await pause(random.integer(200, 1_500))
      outcome = await call(customer, { ...plan(random.pick(sides)), repeats: n }, ++last)
    }
  }

  const read = (random: Random.Random, customer: Customer, operation: "credits" | "videos" | "video-read") => {
    const side = random.pick(sides)
    const [newest, ...older] = videos.slice(-40)
    if (operation === "video-read" && newest !== undefined) {
      const video = random.pick([newest, ...older])
      return call(customer, { operation, side, method: "GET", path: `/v1/videos/${video.id}`, video }, ++last)
    }
    return operation === "videos"
      ? call(customer, { operation, side, method: "GET", path: "/v1/videos?limit=100" }, ++last)
      : call(customer, { operation: "credits", side, method: "GET", path: "/v1/credits" }, ++last)
  }

  const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

  const live = async (customer: Customer, index: number) => {
    const random = Random.make(`${seed}:client:${index}`)
    while (!stopping.signal.aborted) {
      const operation = random.pick(operations)
      if (operation === "chat" || operation === "stream") {
        const leavesAfter = random.chance(0.12) ? random.integer(0, 400) : undefined
        const n = ++last
        const body = chatBody(n, operation === "stream")
        const path = "/v1/chat/completions"
        await call(customer, { operation, side: random.pick(sides), method: "POST", path, body, leavesAfter }, n)
      } else if (operation === "image" || operation === "video") await paidOnce(random, customer, operation)
      else await read(random, customer, operation)
      await pause(random.integer(20, 200))
    }
  }

  return {
    calls,
    /** Runs every client to its end. */
    run: () => Promise.all(world.customers.map(live)),
    stop: () => stopping.abort(),
    /** One more chat, after everything. */
    probe: async (customer: Customer, side: Side) => {
      const n = ++last
      const plan = { operation: "chat", side, method: "POST", path: "/v1/chat/completions" } as const
      return call(customer, { ...plan, body: chatBody(n, false) }, n)
    }
  }
}

export type Load = ReturnType<typeof make>
