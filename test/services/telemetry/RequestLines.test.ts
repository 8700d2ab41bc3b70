import { Writable } from "node:stream"
import { Effect } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { RequestLines } from "../../../src/services/telemetry/RequestLines.ts"
import { assert, describe, it } from "../../harness/It.ts"

const summary = () => {
  const made = new RequestRecord({
    id: "1",
    requestId: "req_1",
    surface: "chat",
    caller: { key: KeyId.make("key_1"), org: OrgId.make("org_1"), scopes: undefined, rpm: undefined },
    rateLimit: 1,
    at: 0,
    startedAt: 0
  })
  made.attempts.add({ route: "m@a", provider: "a", outcome: "retry", status: 503, ms: 7, detail: "their words" })
  made.attempts.add({ route: "m@b", provider: "b", outcome: "ok", status: 200, ms: 20 })
  made.add({ type: "measured", usage: { prompt: 10, completion: 5, cached: 8, cacheWrite: 0, reasoning: 0 } })
  made.attempts.preferredRoute = "m@a"
  made.add({ type: "settled", charged: 20_000n, isLogged: true })
  return made.summary
}

const answered = { requestId: "req_1", surface: "chat", method: "POST", status: 200, code: null, startedAt: 0 }
const times = { total: 30, firstByte: 28, providers: 27, own: 3 }

const written = Effect.fnUntraced(function* (format: "json" | "pretty", worker?: number) {
  let text = ""
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      text += String(chunk)
      done()
    }
  })
  const layer = RequestLines.layer({ format, worker }, output)
  yield* Effect.gen(function* () {
    const { write } = yield* RequestLines
    write?.({ ...answered, path: "/v1/chat/completions", summary: summary() }, times, "m")
    write?.({ ...answered, path: "/metrics", surface: "system" }, times, "")
    write?.({ ...answered, path: undefined, surface: "none", status: 400, startedAt: undefined }, undefined, "")
  }).pipe(Effect.provide(layer), Effect.scoped)
  return text.trimEnd().split("\n")
})

describe("the lines of requests", () => {
  it.effect("are objects with what is known, in order and without those of probes", function* () {
    const lines = (yield* written("json", 2)).map((line): Record<string, unknown> => JSON.parse(line))
    const [first, second, ...more] = lines.map(({ timestamp, ...line }) => {
      assert.isString(timestamp)
      return line
    })
    assert.deepStrictEqual(first, {
      logLevel: "INFO",
      message: "request",
      request_id: "req_1",
      surface: "chat",
      method: "POST",
      path: "/v1/chat/completions",
      status: 200,
      key_id: "key_1",
      organization: "org_1",
      model: "m",
      preferred_route: "m@a",
      attempts: 2,
      failed: [{ route: "m@a", outcome: "retry", status: 503 }],
      prompt_tokens: 10,
      completion_tokens: 5,
      cached_tokens: 8,
      charge_usd: "0.00002",
      first_byte_ms: 28,
      total_ms: 30,
      provider_ms: 27,
      worker: 2
    })
    assert.deepStrictEqual(second, {
      logLevel: "INFO",
      message: "request",
      request_id: "req_1",
      surface: "none",
      method: "POST",
      status: 400,
      worker: 2
    })
    assert.isEmpty(more)
  })

  it.effect("are short for people", function* () {
    const [first = "", ...more] = yield* written("pretty")
    assert.strictEqual(
      first.replace(/^\[[\d:.]{12}\] /, ""),
      "INFO: POST /v1/chat/completions 200 · m · preferred: m@a · 30 ms · 10+5 tokens · 8 cached · 0.00002 USD · failed: m@a retry 503 · key_1 · req_1"
    )
    assert.lengthOf(more, 1)
  })

  it.effect("take bounded memory while nobody reads, and say afterwards how many are lost", function* () {
    let text = ""
    let read: (() => void) | undefined
    const output = new Writable({
      write: (chunk, _encoding, done) => {
        text += String(chunk)
        read = done
      }
    })
    const turn = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))
    yield* Effect.gen(function* () {
      const { write } = yield* RequestLines
      const writeOne = () => write?.({ ...answered, path: "/v1/chat/completions", summary: summary() }, times, "m")
      for (let at = 0; at < 10_000; at += 1) writeOne()
      yield* turn
      assert.isBelow(output.writableLength, 1024 * 1024 + 1000)
      read?.()
      yield* turn
      writeOne()
    }).pipe(Effect.provide(RequestLines.layer({ format: "json", worker: undefined }, output)), Effect.scoped)
    const lines = text.trimEnd().split("\n")
    const lost = /"message":"(\d+) lines of requests are lost/.exec(lines.at(-2) ?? "")?.[1]
    assert.strictEqual(lines.length - 1 + Number(lost), 10_001)
  })

  it.effect("end nothing when their reader is gone", function* () {
    const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error("EPIPE")) })
    yield* Effect.gen(function* () {
      const { write } = yield* RequestLines
      write?.({ ...answered, path: undefined }, undefined, "")
    }).pipe(Effect.provide(RequestLines.layer({ format: "json", worker: undefined }, output)), Effect.scoped)
    yield* Effect.async<void>((resume) => void output.once("close", () => resume(Effect.void)))
  })

  it.effect("are none unless they are asked for", function* () {
    assert.isUndefined((yield* RequestLines).write)
  })
})
