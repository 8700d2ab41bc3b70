import type { RequestDetail, RequestRecord } from "../../src/console/views/requests/RequestRows.ts"
import type { Answers } from "./ConsolePage.ts"
import { at, hostile } from "./DashboardAnswers.ts"

const id = (index: number) => `01a205b1-0000-7000-8000-${String(index).padStart(12, "0")}`

/** A larger index is newer. */
export const request = (index: number, fields: Partial<RequestRecord> = {}): RequestRecord => ({
  id: id(index),
  request_id: `req_${index}`,
  at: at + index,
  status: 200,
  code: null,
  error: null,
  org: "org_1",
  org_name: "acme",
  key_id: "key_1",
  key_name: "production",
  address: "127.0.0.1",
  user_agent: "curl",
  end_user: null,
  tag: null,
  surface: "chat",
  model: "claude-opus-5",
  stream: false,
  route: "claude-opus-5@east",
  preferred_route: null,
  provider_request_id: null,
  attempts: [{ route: "claude-opus-5@east", provider: "east", outcome: "ok", status: 200, ms: 8 }],
  usage: null,
  notes: [],
  charge_usd: 0.00388,
  refunded_usd: 0,
  cost_usd: null,
  stated_cost_usd: null,
  first_byte_ms: 22,
  total_ms: 22,
  video_status: null,
  ...fields
})

const entry = { org: "org_1", ref: null, note: null, key_id: "key_1", hold_id: id(1) }

/** A partially refunded request with a failed attempt and hostile names. */
export const explained: RequestDetail = {
  ...request(1, { org_name: hostile, model: hostile, user_agent: hostile, request_id: "r".repeat(200) }),
  usage: {
    prompt_tokens: 516,
    completion_tokens: 52,
    total_tokens: 568,
    cached_tokens: 1,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
    reasoning_tokens: 0,
    web_searches: 0,
    images: 0,
    seconds: 0
  },
  notes: ["usage_estimated", "unheard_of"],
  attempts: [
    {
      route: "claude-opus-5@west",
      provider: "west",
      outcome: "limit",
      status: 429,
      ms: 5,
      detail: hostile + "x".repeat(10_000),
      provider_request_id: "theirs_1",
      cost_usd: 0.0001
    },
    { route: "claude-opus-5@east", provider: "east", outcome: "ok", status: 200, ms: 8 }
  ],
  hold: {
    id: id(1),
    amount_usd: 0.12827,
    state: "settled",
    charged_usd: 0.00388,
    created_at: at,
    closed_at: at
  },
  timeline: [
    { event: "received", at_ms: 0, detail: "chat" },
    { event: "admitted", at_ms: 1, detail: "0.12827 USD reserved" },
    { event: "attempt 1", took_ms: 5, detail: "" },
    { event: "attempt 2", took_ms: 8, detail: "" },
    { event: "first byte", at_ms: 20 },
    { event: "settled", at_ms: 22, detail: "0.00388 USD charged" },
    { event: "answered", at_ms: 22, detail: "200" },
    { event: "refunded", at_ms: 7_200_000, detail: `0.001 USD ${hostile}` }
  ],
  price: {
    parts: [
      { unit: "prompt tokens", quantity: 515, rate_usd: 5, per: "1M tokens", amount_usd: 0.002575 },
      { unit: "cached prompt tokens", quantity: 1, rate_usd: 0.0375, per: "1M tokens", amount_usd: 0.0000000375 },
      { unit: "completion tokens", quantity: 52, rate_usd: 25, per: "1M tokens", amount_usd: 0.0013 }
    ],
    price_usd: 0.003875038,
    hold_usd: 0.12827,
    charge_usd: 0.003875038,
    refunded_usd: 0.001,
    paid_usd: 0.002875038,
    cost_usd: 0.0031,
    margin_usd: -0.000224962,
    why: "Quantity times today's rate is the charge."
  },
  entries: [
    { id: "1", at, ...entry, kind: "charge", amount_usd: -0.003875038 },
    { id: "2", at: at + 7200, ...entry, kind: "refund", amount_usd: 0.001, note: hostile }
  ],
  video: null,
  preference: null,
  others: [id(2), id(3)]
}

export const video: NonNullable<RequestDetail["video"]> = {
  id: "vid_1",
  request_id: "req_1",
  at,
  status: "failed",
  step: "over",
  org: "org_1",
  key_id: "key_1",
  model: "veo",
  seconds: 8,
  route: null,
  price_usd: 0.4,
  charge_usd: null,
  refunded_usd: 0,
  cost_usd: null,
  error: { code: "upstream_error", message: hostile, attempt: 2, outcome: "timeout" },
  progress: 63,
  completed_at: at,
  deleted_at: null,
  deadline: at,
  media: null,
  hold_id: id(1),
  handle: null,
  tried: ["veo@west", "veo@east"],
  attempts: [
    { route: "veo@west", provider: "west", outcome: "limit", status: 429, ms: 5 },
    { route: "veo@east", provider: "east", outcome: "timeout", ms: 1_800_000, detail: hostile }
  ],
  doubts: 0,
  polls: 1,
  last_error: hostile,
  downloads: 0,
  next_at: null,
  lease_until: null
}

const newestFirst = (rows: ReadonlyArray<RequestRecord>) => rows.toSorted((a, b) => b.at - a.at)

/** Serves pages of the rows that `read` returns, with the status filter. */
export const requestAnswers = (read: () => ReadonlyArray<RequestRecord>): Answers => ({
  "/requests": ({ searchParams }) => {
    const [status, limit, after] = ["status", "limit", "after"].map((name) => searchParams.get(name))
    const rows = newestFirst(read()).filter((row) => !status || String(row.status) === status)
    const start = after ? rows.findIndex((row) => row.id === after) + 1 : 0
    const data = rows.slice(start, start + Number(limit))
    const has_more = start + data.length < rows.length
    return { body: { data, has_more, next: has_more ? data.at(-1)?.id : null } }
  }
})
