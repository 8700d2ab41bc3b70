import { assert, describe, it } from "../harness/It.ts"
import * as Checker from "./Checker.ts"
import * as Conduct from "./Conduct.ts"
import type { Call, History, Outcome, Window } from "./History.ts"
import { maxTokensOf } from "./Load.ts"
import { contentOf, usageOf } from "./Providers.ts"
import type { HoldRow, Rows } from "./Rows.ts"
import { type Customer, credits, prices } from "./World.ts"

const customer: Customer = {
  organization: 0,
  orgId: "org",
  keyId: "key",
  secret: "s",
  isCapped: false,
  limits: { tpm: 9 }
}
const base = { organization: 0, keyId: "key", side: "left", sentAt: 1_000, endedAt: 2_000 } as const

const answer = (status: number, body: unknown, replayed = false): Outcome => ({
  kind: "answer",
  status,
  body,
  replayed
})
const failed = (status: number, code: string) =>
  answer(status, { error: { message: "m", type: "t", param: null, code } })
const completion = (n: number) => answer(200, { choices: [{ message: { content: contentOf(n) } }], usage: usageOf(n) })
const image = answer(200, { data: [{ url: "a" }] })
const accepted = answer(202, { id: "vid_1" })

const chat: Call = { ...base, n: 1, operation: "chat", outcome: completion(1) }
const picture: Call = { ...base, n: 2, operation: "image", outcome: image }
const clip: Call = { ...base, n: 3, operation: "video", outcome: accepted }

const settled = (id: string, amount: bigint, charge: bigint, ofJob = false): HoldRow => ({
  id,
  orgId: "org",
  keyId: "key",
  amount,
  state: "settled",
  ofJob,
  charges: [charge],
  refunded: 0n
})
const chatHold = settled("h1", BigInt(maxTokensOf(1)) * 1_000n + 60n, Checker.priceOf(1))
const imageHold = settled("h2", prices.image, prices.image)
const videoHold = settled("h3", prices.video, prices.video, true)

const history: History = {
  calls: [chat, picture, clip],
  services: [
    { n: 1, account: "first", kind: "chat", at: 1_500, fault: undefined },
    { n: 3, account: "first", kind: "video", at: 1_500, fault: undefined }
  ],
  windows: []
}

const job = { id: "vid_1", orgId: "org", requestId: "chaos-3", prompt: "", holdId: "h3", accepted: true }
const done = { ...job, status: "completed", step: "over" }
const logged = { requestId: "chaos-1", orgId: "org", status: 200, code: null, holdId: "h1", charge: Checker.priceOf(1) }

const booked = (holds: ReadonlyArray<HoldRow>, rest: Partial<Rows> = {}): Rows => {
  const given = credits[0] ?? 0n
  const spent = holds.flatMap(({ charges }) => charges).reduce((sum, charge) => sum + charge, 0n)
  const back = holds.reduce((sum, { refunded }) => sum + refunded, 0n)
  return {
    holds,
    entries: [
      { orgId: "org", kind: "top_up", amount: given },
      { orgId: "org", kind: "charge", amount: -spent },
      { orgId: "org", kind: "adjustment", amount: back }
    ],
    organizations: [{ id: "org", balance: given - spent + back, held: 0n }],
    log: [logged],
    videos: [done],
    keys: [],
    excesses: [],
    ...rest
  }
}
const holds = [chatHold, imageHold, videoHold]
const rules = (findings: ReadonlyArray<{ readonly rule: string }>) => [...new Set(findings.map(({ rule }) => rule))]
const checked = (seen: Partial<History>, rows: Rows) => [
  ...rules(Checker.ofRows({ ...history, ...seen }, rows)),
  ...rules(Conduct.ofHistory({ ...history, ...seen }, [customer]))
]
const withOutcome = (call: Call, outcome: Outcome) =>
  history.calls.map((one) => (one === call ? { ...call, outcome } : one))
const withCall = (call: Call) => ({ calls: [...history.calls, call] })

/** A failed chat, so that nothing else is wrong about it: its fault is in force. */
const outage: Window = { kind: "cut", scope: "database", sides: ["left"], from: 900, to: 1_900 }
const failing = { calls: withOutcome(chat, failed(500, "internal_error")), windows: [outage] }
const released: HoldRow = { ...chatHold, state: "released", charges: [] }
const credit = (balance: number): Call => ({
  ...base,
  n: 9,
  operation: "credits",
  sentAt: 3_000,
  endedAt: 3_001,
  outcome: answer(200, { object: "credits", balance_usd: balance, available_usd: balance, held_usd: 0 })
})

describe("the history checker", () => {
  it("finds nothing where all is well", () => {
    assert.deepStrictEqual(checked({}, booked(holds)), [])
    assert.deepStrictEqual(checked(failing, booked([released, imageHold, videoHold], { log: [] })), [])
    const limited = { calls: withOutcome(chat, failed(429, "tokens_limit_exceeded")) }
    assert.deepStrictEqual(checked(limited, booked([imageHold, videoHold], { log: [] })), [])
    const refunded = { ...chatHold, refunded: Checker.priceOf(1) }
    assert.deepStrictEqual(checked(failing, booked([refunded, imageHold, videoHold], { log: [] })), [])
  })

  const failure = { log: [{ ...logged, status: 500 }] }
  it.each<[what: string, rule: string, seen: Partial<History>, rows: Rows]>([
    ["a charge for a 500", "a failed answer is not charged", failing, booked(holds, failure)],
    ["an answer for nothing", "an answer is charged once, at its price", {}, booked([released, imageHold, videoHold])],
    [
      "another price",
      "an answer is charged once, at its price",
      {},
      booked([{ ...chatHold, charges: [1n] }, imageHold, videoHold])
    ],
    ["two holds of one chat", "a request holds credit once", {}, booked([...holds, { ...chatHold, id: "h9" }])],
    ["an image paid twice", "an image is charged once", {}, booked([...holds, { ...imageHold, id: "h9" }])],
    ["an image for nothing", "an image is charged once", {}, booked([chatHold, videoHold])],
    ["an open hold", "no hold stays open", {}, booked([...holds, { ...released, id: "h9", state: "open" }])],
    [
      "a balance off by one",
      "a balance is the sum of its entries",
      {},
      booked(holds, { organizations: [{ id: "org", balance: 1n, held: 0n }] })
    ],
    [
      "a job that never ends",
      "a video job ends",
      {},
      booked(holds, { videos: [{ ...job, status: "queued", step: "submit" }] })
    ],
    [
      "a failed clip that is paid",
      "a completed video is charged once, a failed one never",
      {},
      booked(holds, { videos: [{ ...done, status: "failed" }] })
    ],
    ["a lost job", "an accepted video is in the database", {}, booked([chatHold, imageHold], { videos: [] })],
    [
      "two submits of one job",
      "a job is submitted at most once a route",
      { services: [...history.services, { n: 3, account: "first", kind: "video", at: 1_600, fault: undefined }] },
      booked(holds)
    ],
    [
      "a request too many at once",
      "a key stays within its limits",
      {},
      booked(holds, { excesses: [{ keyId: "key", what: "6 at once" }] })
    ],
    [
      "a refusal by a limit that the key does not have",
      "no request fails but for a fault",
      { calls: withOutcome(chat, failed(429, "concurrency_limit_exceeded")) },
      booked([released, imageHold, videoHold], { log: [] })
    ],
    ["another status in the log", "the log has the status that the client got", {}, booked(holds, failure)],
    [
      "a 500 without a fault",
      "no request fails but for a fault",
      { ...failing, windows: [] },
      booked([released, imageHold, videoHold], { log: [] })
    ],
    [
      "a 500 long after a fault",
      "no request fails but for a fault",
      { ...failing, windows: [{ ...outage, from: -20_000, to: -10_000 }] },
      booked([released, imageHold, videoHold], { log: [] })
    ],
    [
      "a 500 of the other gateway's fault",
      "no request fails but for a fault",
      { ...failing, windows: [{ ...outage, sides: ["right"] }] },
      booked([released, imageHold, videoHold], { log: [] })
    ],
    [
      "a hang",
      "no request hangs",
      { calls: history.calls.map((call) => ({ ...call, endedAt: 60_000 })) },
      booked(holds)
    ],
    [
      "another's answer",
      "an answer is the customer's own and whole",
      { calls: withOutcome(chat, completion(7)) },
      booked(holds)
    ],
    [
      "one result for two",
      "a result belongs to one order",
      withCall({ ...picture, n: 4 }),
      booked([...holds, { ...imageHold, id: "h9" }])
    ],
    [
      "another result for a repeat",
      "a key has one result",
      withCall({ ...picture, n: 4, repeats: 2, outcome: answer(200, { data: [{ url: "b" }] }, true) }),
      booked(holds)
    ],
    [
      "another's video",
      "a video is its organization's",
      withCall({
        ...base,
        n: 4,
        operation: "video-read",
        organization: 1,
        outcome: answer(200, {}),
        video: { id: "vid_1", organization: 0 }
      }),
      booked(holds)
    ],
    [
      "another's video in a list",
      "a list has its organization's videos",
      withCall({
        ...base,
        n: 4,
        operation: "videos",
        organization: 1,
        outcome: answer(200, { data: [{ id: "vid_1" }] })
      }),
      booked(holds)
    ],
    ["a charge not seen yet", "a charge is visible once it is answered", withCall(credit(1_000)), booked(holds)],
    [
      "a page instead of an envelope",
      "an error is the envelope",
      { calls: withOutcome(chat, answer(500, "<html>")), windows: [outage] },
      booked([released, imageHold, videoHold], { log: [] })
    ],
    [
      "a provider's words",
      "nothing of a provider's reaches a client",
      { calls: withOutcome(chat, failed(500, "hush")), windows: [outage] },
      booked([released, imageHold, videoHold], { log: [] })
    ]
  ])("finds %s", (_, rule, seen, rows) => {
    assert.include(checked(seen, rows), rule)
  })
})
