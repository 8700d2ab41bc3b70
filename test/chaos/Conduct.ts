import { Predicate } from "effect"
import { orderedBy, priceOf } from "./Checker.ts"
import { type Call, type Finding, group, type History, isGood, type Window } from "./History.ts"
import { type Customer, credits, prices } from "./World.ts"

/** A window in which this process itself got no processor. */
export const starved = "starved machine"

/** Milliseconds after a fault's end within which it still explains what happens. */
const grace = { database: 6_000, process: 2_000, organization: 3_000, provider: 6_000, machine: 3_000 }

/** The longest that an answer may take, in milliseconds, beyond what its own gateway stood still. */
const longest = { reading: 8_000, generating: 30_000 }

const isReading = ({ operation }: Call) =>
  operation === "credits" || operation === "videos" || operation === "video-read"

const touches = ({ endedAt, organization, sentAt, side }: Call, window: Window) =>
  window.from <= endedAt &&
  window.to + grace[window.scope] >= sentAt &&
  window.sides.includes(side) &&
  (window.organization === undefined || window.organization === organization)

const overlap = ({ endedAt, sentAt, side }: Call, { from, kind, sides, to }: Window) =>
  (kind === "freeze" || kind === starved) && sides.includes(side)
    ? Math.max(0, Math.min(endedAt, to) - Math.max(sentAt, from))
    : 0

/** The scopes of faults that may be behind a server's error. */
const causes: Readonly<Record<number, ReadonlyArray<Window["scope"]>>> = {
  500: ["database", "organization", "process", "machine"],
  502: ["provider"],
  503: ["provider", "process", "database", "machine"],
  504: ["provider", "process", "machine"]
}

const errorOf = (body: unknown) =>
  Predicate.isRecord(body) && Predicate.isRecord(body["error"]) ? body["error"] : undefined

/** The refusal is that of a limit which the key has. */
const isLimited = (body: unknown, customer: Customer | undefined): boolean => {
  const code = errorOf(body)?.["code"]
  if (code === "tokens_limit_exceeded") return customer?.limits.tpm !== undefined
  return code === "concurrency_limit_exceeded" && customer?.limits.concurrency !== undefined
}

/** A history of a hundred thousand calls is not gone through for each of them. */
interface Known {
  readonly history: History
  /** What its provider did to an order. */
  readonly faultOf: ReadonlyMap<number, string>
  readonly timesAsked: ReadonlyMap<number, ReadonlyArray<Call>>
}

const know = (history: History): Known => ({
  history,
  faultOf: new Map(
    history.services.flatMap(
      ({ fault, n }): ReadonlyArray<[number, string]> => (fault === undefined ? [] : [[n, fault]])
    )
  ),
  timesAsked: group(history.calls, orderedBy)
})

/** Why a client may have been given this answer; undefined where nothing explains it. */
const explanation = (
  call: Call,
  { faultOf, history, timesAsked }: Known,
  customers: ReadonlyArray<Customer>
): string | undefined => {
  const { outcome } = call
  if (isGood(outcome) || outcome.kind === "left") return "as it should be"
  const within = (scopes: ReadonlyArray<Window["scope"]>) =>
    history.windows.find((window) => scopes.includes(window.scope) && touches(call, window))?.kind
  if (outcome.kind === "hang") return undefined
  if (outcome.kind === "reset") return within(["process"])
  const stormy = faultOf.get(orderedBy(call))
  if (outcome.kind === "stream") return stormy ?? within(["provider", "process", "database", "organization", "machine"])
  const { status } = outcome
  if (status >= 500) return (status === 500 ? undefined : stormy) ?? within(causes[status] ?? [])
  const customer = customers.find(({ keyId }) => keyId === call.keyId)
  if (status === 402 && (customer?.isCapped === true || call.organization === credits.length - 1)) return "no credit"
  if (status === 429 && isLimited(outcome.body, customer)) return "a limit of its key"
  if (status === 404 && call.video !== undefined && call.video.organization !== call.organization) return "not its own"
  return status === 409 && (timesAsked.get(orderedBy(call))?.length ?? 0) > 1 ? "a repeat" : undefined
}

const envelopes = function* ({ n, outcome }: Call): Generator<Finding> {
  if (outcome.kind !== "answer" || outcome.status < 400) return
  const error = errorOf(outcome.body)
  if (typeof error?.["message"] !== "string" || typeof error["type"] !== "string") {
    yield { rule: "an error is the envelope", detail: JSON.stringify(outcome.body), about: [n] }
  }
  if (JSON.stringify(outcome.body).includes("hush")) {
    yield { rule: "nothing of a provider's reaches a client", detail: JSON.stringify(outcome.body), about: [n] }
  }
}

/** A customer reads its own organization's videos and nobody else's. */
const isolation = function* ({ calls }: History): Generator<Finding> {
  const owners = new Map<string, number>()
  for (const { operation, organization, outcome } of calls) {
    if (operation !== "video" || outcome.kind !== "answer" || !Predicate.isRecord(outcome.body)) continue
    if (outcome.status === 202) owners.set(String(outcome.body["id"]), organization)
  }
  for (const { n, operation, organization, outcome, video } of calls) {
    if (outcome.kind !== "answer" || outcome.status !== 200 || !Predicate.isRecord(outcome.body)) continue
    if (operation === "video-read" && video?.organization !== organization) {
      yield { rule: "a video is its organization's", detail: `${video?.id} was read`, about: [n] }
    }
    const { data } = outcome.body
    if (operation !== "videos" || !Array.isArray(data)) continue
    for (const item of data) {
      const owner = Predicate.isRecord(item) ? owners.get(String(item["id"])) : undefined
      if (owner !== undefined && owner !== organization) {
        yield { rule: "a list has its organization's videos", detail: JSON.stringify(item), about: [n] }
      }
    }
  }
}

/** Answers under one Idempotency-Key are one result, and nothing is given to two orders. */
const replays = function* ({ calls }: History): Generator<Finding> {
  const resultOf = ({ outcome }: Call) => {
    if (outcome.kind !== "answer" || outcome.status >= 300 || !Predicate.isRecord(outcome.body)) return []
    return [JSON.stringify(outcome.body["id"] ?? outcome.body["data"])]
  }
  const owners = new Map<string, number>()
  for (const [order, same] of group(
    calls.filter(({ operation }) => operation === "image" || operation === "video"),
    orderedBy
  )) {
    const results = new Set(same.flatMap(resultOf))
    if (results.size > 1) {
      yield { rule: "a key has one result", detail: [...results].join(" "), about: same.map(({ n }) => n) }
    }
    for (const result of results) {
      const owner = owners.get(result)
      if (owner !== undefined) yield { rule: "a result belongs to one order", detail: result, about: [owner, order] }
      owners.set(result, order)
    }
  }
}

const nano = (usd: unknown) => BigInt(Math.round(Number(usd) * 1e9))

const costOf = ({ n, operation, outcome }: Call) => {
  if (!isGood(outcome) || (outcome.kind === "answer" && outcome.replayed)) return 0n
  if (operation === "chat" || operation === "stream") return priceOf(n)
  return operation === "image" ? prices.image : 0n
}

/** What was answered before a balance was asked for is paid in it. */
const balances = function* ({ calls }: History): Generator<Finding> {
  for (const [organization, mine] of group(calls, (call) => call.organization)) {
    const spending = mine.filter((call) => costOf(call) > 0n).toSorted((a, b) => a.endedAt - b.endedAt)
    const reads = mine.filter(({ operation }) => operation === "credits").toSorted((a, b) => a.sentAt - b.sentAt)
    const given = credits[organization] ?? 0n
    let spent = 0n
    let next = 0
    for (const { n, outcome, sentAt } of reads) {
      for (let call = spending[next]; call !== undefined && call.endedAt < sentAt; call = spending[++next]) {
        spent += costOf(call)
      }
      if (outcome.kind !== "answer" || outcome.status !== 200 || !Predicate.isRecord(outcome.body)) continue
      const { available_usd: available, balance_usd: balance, held_usd: held } = outcome.body
      // Doubles of thousands of dollars are exact to less than this.
      const slack = 1_000n
      if (nano(balance) > given - spent + slack) {
        yield { rule: "a charge is visible once it is answered", detail: JSON.stringify(outcome.body), about: [n] }
      }
      if (Number(held) < 0 || Number(balance) < 0 || nano(available) > nano(balance) - nano(held) + slack) {
        yield {
          rule: "what is available is the balance without holds",
          detail: JSON.stringify(outcome.body),
          about: [n]
        }
      }
    }
  }
}

/** What clients saw and no row can make good. */
export const ofHistory = (history: History, customers: ReadonlyArray<Customer>): ReadonlyArray<Finding> => {
  const findings: Array<Finding> = []
  const known = know(history)
  for (const call of history.calls) {
    const { endedAt, n, outcome, sentAt } = call
    const about = [n]
    if (explanation(call, known, customers) === undefined) {
      const what = outcome.kind === "answer" ? `${outcome.status} ${JSON.stringify(outcome.body)}` : outcome.kind
      findings.push({ rule: "no request fails but for a fault", detail: what, about })
    }
    const frozen = history.windows.reduce((millis, window) => millis + overlap(call, window), 0)
    const took = endedAt - sentAt - frozen
    if (took > (isReading(call) ? longest.reading : longest.generating)) {
      findings.push({ rule: "no request hangs", detail: `it took ${Math.round(took)} ms`, about })
    }
    findings.push(...envelopes(call))
  }
  return [...findings, ...isolation(history), ...replays(history), ...balances(history)]
}
