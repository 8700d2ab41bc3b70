import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Schedule } from "effect"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { record } from "../contracts/ChatHosts.ts"
import { hasAllCases } from "../harness/Cases.ts"
import { assert, withLayer } from "../harness/It.ts"
import { type ReadAnswer, read } from "./Answers.ts"
import { type Case, type Expected, list, type Reply, readCases, type Usage } from "./Case.ts"
import { compact, textsIn } from "./Exact.ts"
import {
  type Combination,
  combinationsOf,
  Hosts,
  isOn,
  layer,
  prices,
  type Received,
  TrafficGateway,
  wireOf
} from "./Gateway.ts"
import { differences } from "./Match.ts"
import { accumulate, asAccumulated } from "./OfficialReaders.ts"
import { callId, usageIn } from "./Replies.ts"
import { bodyOf, paths } from "./Requests.ts"

const cases = readCases()

/** Each combination of a case, or in `npm test` one: those of all cases together cover each dialect, wire and form. */
const chosenOf = (one: Case, at: number): ReadonlyArray<Combination> => {
  const every = combinationsOf(one)
  if (hasAllCases || process.env["TRAFFIC"] !== undefined) return every
  return every.filter((_, index) => index === (at * 5) % every.length)
}

const all = cases.flatMap((one, at) => (one.invalid === undefined ? chosenOf(one, at) : []))

/** What is so unless a case says otherwise: the answer of the last route, as its host gave it. */
const usual = ({ of, routes, wire }: Combination): Expected => {
  const route = routes.at(-1)
  const last: Reply = list(route?.upstream).at(-1) ?? {}
  const isPlain = last[route?.wire ?? wire] === undefined && last.refuse === undefined && last.cut !== true
  if (!isPlain) return {}
  const { calls, reasoning, text = "" } = last
  const names = of.request?.tools?.map(({ name }) => name) ?? []
  return {
    answer: {
      text,
      ...(reasoning !== undefined && of.request?.effort !== undefined && { reasoning }),
      calls: (calls ?? []).map((call, index) => ({
        id: { $matches: `^${callId(call, index)}(~sig~|$)` },
        name: call.name ?? names[call.tool ?? 0],
        arguments: call.arguments ?? "{}"
      })),
      finish: last.finish ?? (calls === undefined ? "stop" : "tool_calls"),
      usage: usageIn(last)
    },
    charge: usageIn(last)
  }
}

/** All that a case says of a combination, later entries over earlier ones. */
const expectedOf = (one: Combination): Expected => {
  let expected = usual(one)
  for (const { answer, on = {}, ...rest } of list<Expected>(one.of.expect)) {
    if (!isOn(on, one)) continue
    const error = answer?.["error"]
    const known = expected.answer?.["error"]
    // What is usual of an answer is not of an error.
    const before = error !== undefined && known === undefined ? { charge: "free" as const } : expected
    const merged = error === undefined ? undefined : { error: { ...record(known), ...record(error) } }
    expected = { ...before, ...rest, answer: { ...before.answer, ...answer, ...merged } }
  }
  return expected
}

const nano = (charge: Usage | number | "free"): bigint => {
  if (typeof charge === "number") return BigInt(charge)
  if (charge === "free") return 0n
  const { cache_write = 0, cache_write_hour = 0, cached = 0, completion = 0, prompt = 0 } = charge
  const of = (tokens: number, price: bigint) => BigInt(tokens) * price
  return (
    of(prompt - cached - cache_write, prices.prompt) +
    of(cached, prices.cached) +
    of(cache_write - cache_write_hour, prices.cache_write) +
    of(cache_write_hour, prices.cache_write_hour) +
    of(completion, prices.completion)
  )
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** White space between the tokens of arguments means nothing. */
const normalized = (text: unknown) => (typeof text === "string" && isJson(text) ? compact(text) : text)

const withNormalCalls = <A extends { readonly calls?: unknown }>(answer: A): A =>
  Array.isArray(answer.calls)
    ? {
        ...answer,
        calls: answer.calls.map((call: unknown) => {
          return {
            ...record(call),
            ...("arguments" in record(call) && { arguments: normalized(record(call).arguments) })
          }
        })
      }
    : answer

interface Tried {
  readonly one: Combination
  readonly requestId: string
  /** Nano-USD, where the answer tells them. */
  readonly toldCharge: bigint | undefined
  readonly answer: ReadAnswer | undefined
  readonly text: string
  readonly problems: ReadonlyArray<string>
}

const sentProblems = (expected: Expected, received: ReadonlyArray<Received>): ReadonlyArray<string> =>
  received.flatMap((request) => {
    const { body, refused, text, wire } = request
    const { body: wanted, contains = [], exact = {}, lacks = [], reads, same = [] } = expected.sent ?? {}
    const texts = Object.keys(exact).length + same.length > 0 ? textsIn(text) : new Map<string, string>()
    const problems = [
      ...refused,
      ...(reads === undefined ? [] : differences(wireOf(wire).understand(request), reads, "sent")),
      ...(wanted === undefined ? [] : differences(body, wanted, "sent")),
      ...contains.filter((part) => !text.includes(part)).map((part) => `sent lacks ${part}`),
      ...lacks.filter((part) => text.includes(part)).map((part) => `sent contains ${part}`),
      ...same.flatMap(([first = "", ...others]) =>
        others
          .filter((path) => texts.get(path) === undefined || texts.get(path) !== texts.get(first))
          .map((path) => `sent ${path}: ${texts.get(path)}, but ${first}: ${texts.get(first)}`)
      ),
      ...Object.entries(exact).flatMap(([at, value]) =>
        compact(texts.get(at) ?? "") === compact(value) ? [] : [`sent ${at}: ${texts.get(at)} instead of ${value}`]
      )
    ]
    return problems.length === 0 ? [] : [...problems, `sent: ${text.slice(0, 2_000)}`]
  })

/** The official client makes of a stream what we do. */
const officialProblems = async (one: Combination, answer: ReadAnswer, text: string): Promise<ReadonlyArray<string>> => {
  const { dialect, stream } = one
  if (!stream || answer.error !== undefined || answer.status !== 200 || dialect === "api") return []
  // OpenAI's helper for streams knows no calls of custom tools, not even OpenAI's own.
  if (dialect === "chat" && text.includes('"type":"custom"')) return []
  try {
    const accumulated = await accumulate(dialect, text)
    return differences(accumulated, asAccumulated(answer), "the official client")
  } catch (error) {
    return [`the official client fails: ${String(error)}`]
  }
}

const tryOne = (baseUrl: string, secret: string, one: Combination) =>
  Effect.promise(async (): Promise<Tried> => {
    const { dialect, model, of, stream } = one
    const requestId = `req-${randomUUID()}`
    const path = dialect === "api" ? (of.api?.path ?? "") : paths[dialect]
    const response = await fetch(baseUrl.replace(/\/v1$/, path), {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json", "x-request-id": requestId },
      body: bodyOf(dialect, of.request ?? {}, model, stream)
    })
    const text = await response.text()
    const usd = response.headers.get("x-gateway-charge-usd")
    const toldCharge = usd === null ? undefined : BigInt(Math.round(Number(usd) * 1e9))
    const type = response.headers.get("content-type") ?? ""
    try {
      const answer = read(dialect, response.status, type, text)
      const isStream = type.startsWith("text/event-stream")
      const form = isStream === (stream && response.status === 200) ? [] : [`answered as ${type}`]
      const problems = [...form, ...answer.problems, ...(await officialProblems(one, answer, text))]
      return { one, requestId, toldCharge, answer, text, problems }
    } catch (error) {
      return { one, requestId, toldCharge, answer: undefined, text, problems: [`unreadable: ${String(error)}`] }
    }
  })

interface Row {
  readonly requestId: string
  readonly charged: string
  readonly held: string
  readonly cost: string | null
  readonly open: boolean
  readonly notes: ReadonlyArray<string>
  readonly attempts: ReadonlyArray<{ readonly outcome: string }>
}

/** The log's rows of these requests, with what the ledger says of each, once all are there and no hold is open. */
const rowsOf = (ids: ReadonlyArray<string>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const query = sql<Row>`SELECT r.*, r.cost::text AS cost,
        (SELECT coalesce(-sum(e.amount), 0)::text FROM ledger_entries e WHERE e.hold_id = r.hold_id) AS charged,
        (SELECT h.amount::text FROM all_holds h WHERE h.id = r.hold_id) AS held,
        EXISTS (SELECT 1 FROM all_holds h WHERE h.id = r.hold_id AND h.state = 'open') AS open
      FROM request_log r WHERE r.request_id = ANY (${[...ids]}::text[])`
    const patience = Schedule.intersect(Schedule.spaced("20 millis"), Schedule.recurs(250))
    return query.pipe(
      Effect.orDie,
      Effect.filterOrFail((rows) => rows.length >= ids.length && !rows.some(({ open }) => open)),
      Effect.retry(patience),
      Effect.orElse(() => Effect.orDie(query)),
      Effect.map((rows) => new Map(rows.map((row) => [row.requestId, row])))
    )
  })

const moneyProblems = (
  { attempts, charge, cost, lacks_notes = [], log, notes = [] }: Expected,
  row: Row | undefined
) => {
  if (row === undefined) return ["no row in the log"]
  const expected = charge === undefined ? undefined : charge === "hold" ? BigInt(row.held) : nano(charge)
  const expectedCost = cost === undefined || typeof cost === "number" ? cost : Number(nano(cost)) / 2
  const charged = BigInt(row.charged)
  return [
    ...(row.open ? ["its hold is open"] : []),
    ...(expected === undefined || charged === expected ? [] : [`charged ${charged} instead of ${expected} nano-USD`]),
    ...(expectedCost === undefined || Number(row.cost ?? Number.NaN) === expectedCost
      ? []
      : [`costs ${row.cost} instead of ${expectedCost} nano-USD`]),
    ...notes.filter((note) => !row.notes.includes(note)).map((note) => `no note ${note} but ${row.notes.join()}`),
    ...lacks_notes.filter((note) => row.notes.includes(note)).map((note) => `a note ${note}`),
    ...(attempts === undefined
      ? []
      : differences(
          row.attempts.map(({ outcome }) => outcome),
          attempts,
          "attempts"
        )),
    ...(log === undefined ? [] : differences(row, log, "log"))
  ]
}

const problemsOf = (
  { answer, one, problems, requestId, text, toldCharge }: Tried,
  received: ReadonlyArray<Received>,
  rows: ReadonlyMap<string, Row>
) => {
  const expected = expectedOf(one)
  const wanted = expected.answer ?? {}
  const isWanted = wanted["error"] !== undefined
  const asked = one.routes.map((_, index) => received.filter(({ route }) => route === index).length)
  const row = rows.get(requestId)
  const isTold = toldCharge === undefined || toldCharge === BigInt(row?.charged ?? -1)
  const found = [
    ...problems,
    ...(isTold ? [] : [`the answer tells a charge of ${toldCharge} nano-USD, the ledger has ${row?.charged}`]),
    ...(answer?.error !== undefined && !isWanted ? [`an error: ${JSON.stringify(answer.error)}`] : []),
    ...(answer === undefined ? [] : differences(withNormalCalls(answer), withNormalCalls(wanted), "answer")),
    ...(expected.answered?.contains ?? []).filter((part) => !text.includes(part)).map((part) => `no ${part}`),
    ...(expected.answered?.lacks ?? []).filter((part) => text.includes(part)).map((part) => `answered with ${part}`),
    ...sentProblems(expected, received),
    ...(expected.asked === undefined ? [] : differences(asked, expected.asked, "requests to each route")),
    ...moneyProblems(expected, row)
  ]
  const { dialect, stream, wire } = one
  if (found.length === 0) return []
  return [
    `${dialect} over ${wire}, ${stream ? "streamed" : "whole"}:`,
    ...found.map((line) => `  ${line}`),
    `  answered: ${text.slice(0, 1_500)}`
  ]
}

withLayer(layer(all))("traffic as clients and vendors send it", (it) => {
  it.effect.each(cases.map((one) => ({ ...one, title: `${one.file}: ${one.name}` })))(
    "$title",
    function* (given: Case) {
      assert.isUndefined(given.invalid)
      const combinations = all.filter(({ of }) => of.id === given.id)
      assert.isNotEmpty(combinations, "the case is tried nowhere")
      const { baseUrl, invalid, secret } = yield* TrafficGateway
      const { received } = yield* Hosts
      const tried = yield* Effect.forEach(combinations, (one) => tryOne(baseUrl, secret, one), { concurrency: 6 })
      const rows = yield* rowsOf(tried.map(({ requestId }) => requestId))
      const unserved = combinations.flatMap(({ model }) => invalid.get(model) ?? [])
      assert.deepStrictEqual(unserved, [], "the catalog refuses its routes")
      const problems = tried.flatMap((one) => problemsOf(one, received(one.one.model), rows))
      if (problems.length > 0) assert.fail(`\n${problems.join("\n")}`)
    }
  )

  it.effect("the books balance after all cases", function* () {
    const { verify } = yield* LedgerAdmin
    assert.deepStrictEqual((yield* verify).violations, [])
  })
})
