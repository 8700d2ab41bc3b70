import { Predicate } from "effect"
import { type Call, type Finding, group, type History, isFailed, isGood } from "./History.ts"
import { maxTokensOf } from "./Load.ts"
import { contentOf, usageOf } from "./Providers.ts"
import type { HoldRow, Rows } from "./Rows.ts"
import { prices } from "./World.ts"

/** What a chat costs, in nano-USD. */
export const priceOf = (n: number) => {
  const { completion_tokens, prompt_tokens } = usageOf(n)
  return BigInt(prompt_tokens) + 1_000n * BigInt(completion_tokens)
}

/** The chat that a hold is for: its amount is a thousand times its output cap and less than that for the prompt. */
export const orderOf = ({ amount }: HoldRow) => Number(amount / 1_000n) - maxTokensOf(0)

/** What the customer paid for a hold in the end. */
const paid = ({ charges, refunded }: HoldRow) => charges.reduce((sum, charge) => sum + charge, 0n) - refunded

const usd = (nano: bigint) => `${Number(nano) / 1e9} USD`
const sum = (amounts: ReadonlyArray<bigint>) => amounts.reduce((total, amount) => total + amount, 0n)

const orderIn = (requestId: string) => Number(/^chaos-(\d+)$/.exec(requestId)?.[1] ?? -1)

/** The call whose key it has. */
export const orderedBy = ({ n, repeats }: Call) => repeats ?? n

const isChat = ({ operation }: Call) => operation === "chat" || operation === "stream"

/** Each chat is paid exactly once at its price, or not at all; its hold tells which it is. */
const chats = function* ({ calls, services }: History, { holds }: Rows): Generator<Finding> {
  const byOrder = group(
    holds.filter(({ ofJob, amount }) => !ofJob && amount !== prices.image),
    orderOf
  )
  const served = new Set(services.flatMap(({ fault, n }) => (fault === undefined || fault === "slow" ? [n] : [])))
  for (const { n, operation, outcome } of calls.filter(isChat)) {
    const mine = byOrder.get(n) ?? []
    const charged = sum(mine.map(paid))
    const about = [n]
    if (mine.length > 1) yield { rule: "a request holds credit once", detail: `${mine.length} holds`, about }
    if (isFailed(outcome) && charged !== 0n) {
      yield { rule: "a failed answer is not charged", detail: `charged ${usd(charged)}`, about }
    }
    if (isGood(outcome) && charged !== priceOf(n)) {
      const detail = `charged ${usd(charged)} instead of ${usd(priceOf(n))}`
      yield { rule: "an answer is charged once, at its price", detail, about }
    }
    // Whoever leaves a stream pays for what came, as the gateway counts it.
    const isCounted = operation === "stream" && outcome.kind === "left"
    if (!isGood(outcome) && !isFailed(outcome) && !isCounted && charged !== 0n && charged !== priceOf(n)) {
      yield { rule: "a request is charged its price or nothing", detail: `charged ${usd(charged)}`, about }
    }
    if (isGood(outcome) && !served.has(n)) yield { rule: "an answer was served by a provider", detail: "none", about }
    const text =
      outcome.kind === "answer" ? JSON.stringify(outcome.body) : outcome.kind === "stream" ? outcome.text : ""
    if (isGood(outcome) && !text.includes(contentOf(n))) {
      yield { rule: "an answer is the customer's own and whole", detail: text, about }
    }
  }
}

/** Of the images that share an API key, as many are paid as were answered; one that broke may be either. */
const images = function* ({ calls }: History, { holds, log }: Rows): Generator<Finding> {
  const asked = calls.filter(({ operation }) => operation === "image")
  const byKey = group(asked, ({ keyId }) => keyId)
  for (const [keyId, mine] of byKey) {
    const orders = [...group(mine, orderedBy).values()]
    const good = orders.filter((order) => order.some(({ outcome }) => isGood(outcome))).length
    // An attempt that broke may have been paid for; a later attempt under its key is then given what it made.
    const open = orders.filter(
      (order) => !order.some(({ outcome }) => isGood(outcome)) && order.some(({ outcome }) => !isFailed(outcome))
    ).length
    const charged = sum(holds.filter((hold) => hold.keyId === keyId && hold.amount === prices.image).map(paid))
    const [least, most] = [BigInt(good) * prices.image, BigInt(good + open) * prices.image]
    if (charged < least || charged > most) {
      const detail = `key ${keyId} paid ${usd(charged)}; ${good} answered, ${open} broken off`
      yield { rule: "an image is charged once", detail, about: orders.flatMap(([first]) => (first ? [first.n] : [])) }
    }
  }
  const holdOf = new Map(holds.map((hold) => [hold.id, hold]))
  const callOf = new Map(asked.map((call) => [call.n, call]))
  const answered = new Set(asked.flatMap((call) => (isGood(call.outcome) ? [orderedBy(call)] : [])))
  for (const { holdId, requestId, status } of log) {
    const hold = holdId === null ? undefined : holdOf.get(holdId)
    const call = callOf.get(orderIn(requestId))
    if (hold === undefined || call === undefined || hold.ofJob) continue
    if (paid(hold) !== 0n && isFailed(call.outcome) && !answered.has(orderedBy(call))) {
      yield {
        rule: "a failed answer is not charged",
        detail: `image, logged ${status}: ${usd(paid(hold))}`,
        about: [call.n]
      }
    }
  }
}

/** Each job ended, was charged once or not at all, and was submitted at most once a route. */
const videos = function* (history: History, rows: Rows): Generator<Finding> {
  const holdOf = new Map(rows.holds.map((hold) => [hold.id, hold]))
  const asked = history.calls.filter(({ operation }) => operation === "video")
  const rowOf = new Map(rows.videos.map((row) => [row.id, row]))
  const jobsOf = group(rows.videos, ({ requestId }) => orderIn(requestId))
  const answered = new Set(asked.flatMap((call) => (isGood(call.outcome) ? [call.n, orderedBy(call)] : [])))
  for (const { holdId, id, requestId, status, step } of rows.videos) {
    const about = [orderIn(requestId)]
    const hold = holdOf.get(holdId)
    const charged = hold === undefined ? 0n : paid(hold)
    if (step !== "over") yield { rule: "a video job ends", detail: `${id} is ${status}, ${step}`, about }
    else if (charged !== (status === "completed" ? prices.video : 0n)) {
      yield {
        rule: "a completed video is charged once, a failed one never",
        detail: `${id} ${status}: ${usd(charged)}`,
        about
      }
    }
  }
  for (const { n, outcome } of asked) {
    const job = (jobsOf.get(n) ?? []).find(({ status }) => status === "completed")
    if (isFailed(outcome) && job !== undefined && !answered.has(n)) {
      yield { rule: "a failed answer is not charged", detail: `its job ${job.id} was rendered and charged`, about: [n] }
    }
    if (outcome.kind !== "answer" || !isGood(outcome) || !Predicate.isRecord(outcome.body)) continue
    const id = String(outcome.body["id"])
    if (!rowOf.has(id)) yield { rule: "an accepted video is in the database", detail: id, about: [n] }
  }
  const submits = history.services.filter(({ kind }) => kind === "video")
  const jobsOrdered = group(
    asked.filter(({ n }) => jobsOf.has(n)),
    orderedBy
  )
  for (const [n, same] of group(submits, ({ n }) => n)) {
    const jobs = (jobsOrdered.get(n) ?? []).flatMap((call) => jobsOf.get(call.n) ?? []).length
    for (const [account, times] of group(same, ({ account }) => account)) {
      if (times.length > Math.max(1, jobs)) {
        yield { rule: "a job is submitted at most once a route", detail: `${times.length} to ${account}`, about: [n] }
      }
    }
  }
}

/** The books themselves, and what no customer may see of another. */
const books = function* (rows: Rows): Generator<Finding> {
  for (const { amount, id, state } of rows.holds) {
    if (state === "open") yield { rule: "no hold stays open", detail: `${id}: ${usd(amount)}`, about: [] }
  }
  for (const { balance, held, id } of rows.organizations) {
    const entries = sum(rows.entries.filter(({ orgId }) => orgId === id).map(({ amount }) => amount))
    if (balance !== entries)
      yield { rule: "a balance is the sum of its entries", detail: `${id}: ${balance}`, about: [] }
    if (held !== 0n) yield { rule: "nothing stays held", detail: `${id}: ${held}`, about: [] }
    if (balance < 0n) yield { rule: "no balance falls below zero", detail: `${id}: ${balance}`, about: [] }
  }
  for (const { charges, id, state } of rows.holds) {
    if (charges.length !== (state === "settled" ? 1 : 0)) {
      yield { rule: "a settled hold has one charge", detail: `${id} ${state}: ${charges.length}`, about: [] }
    }
  }
}

/** No key was given more than its limits allow, at any moment. */
const limits = function* ({ excesses }: Rows): Generator<Finding> {
  for (const { keyId, what } of excesses) {
    yield { rule: "a key stays within its limits", detail: `${keyId}: ${what}`, about: [] }
  }
}

/** What the log says of a request is what its client saw. */
const logs = function* ({ calls }: History, { log }: Rows): Generator<Finding> {
  const byOrder = new Map(log.map((row) => [orderIn(row.requestId), row]))
  for (const { n, outcome } of calls) {
    const row = byOrder.get(n)
    if (row === undefined || outcome.kind !== "answer" || row.status === outcome.status) continue
    yield {
      rule: "the log has the status that the client got",
      detail: `${row.status} for ${outcome.status}`,
      about: [n]
    }
  }
}

/** What the rows show; while the gateways still mend what faults broke, this may change. */
export const ofRows = (history: History, rows: Rows): ReadonlyArray<Finding> => [
  ...books(rows),
  ...chats(history, rows),
  ...images(history, rows),
  ...videos(history, rows),
  ...limits(rows),
  ...logs(history, rows)
]

/** What the database says of requests, a line each. */
export const linesOf = ({ holds, log, videos }: Rows, about: ReadonlySet<number>): ReadonlyArray<string> => {
  const logged = log.filter(({ requestId }) => about.has(orderIn(requestId)))
  const jobs = videos.filter(({ requestId }) => about.has(orderIn(requestId)))
  const named = new Set([...logged, ...jobs].map(({ holdId }) => holdId))
  return [
    ...holds
      .filter((hold) => named.has(hold.id) || (!hold.ofJob && about.has(orderOf(hold))))
      .map(
        ({ charges, id, refunded, state }) =>
          `hold ${id} ${state}, charges [${charges.join(" ")}], refunded ${refunded} nano-USD`
      ),
    ...logged.map(({ code, holdId, requestId, status }) => `log ${requestId}: ${status} ${code}, hold ${holdId}`),
    ...jobs.map(
      ({ accepted, holdId, id, status, step }) =>
        `video ${id}: ${status}, ${step}, ${accepted ? "accepted" : "not accepted"}, hold ${holdId}`
    )
  ].map((line) => `  ${line}`)
}
