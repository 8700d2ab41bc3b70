import { createSocket, type RemoteInfo } from "node:dgram"
import { Deferred, Effect, Fiber } from "effect"
import { makeNames } from "../../src/fetching/PinnedRequest.ts"
import { assert, describe, it } from "../harness/It.ts"

const types = { 1: "A", 28: "AAAA" } as const
type Type = (typeof types)[keyof typeof types]

/** What each record of a name holds; `silence` is never answered. */
type Records = Readonly<
  Record<string, Partial<Record<Type, ReadonlyArray<ReadonlyArray<number>> | "silence" | "broken">>>
>

const questionOf = (query: Buffer) => {
  const labels: Array<string> = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length))
    at += length + 1
  }
  const type = query.readUInt16BE(at + 1) === 28 ? types[28] : types[1]
  return { name: labels.join(".").toLowerCase(), type, question: query.subarray(12, at + 5) }
}

const serverFailure = 2
const nameError = 3

const reply = (query: Buffer, records: Records): Buffer | undefined => {
  const { name, question, type } = questionOf(query)
  const found = records[name] === undefined ? undefined : (records[name][type] ?? [])
  if (found === "silence") return undefined
  const answers = found === undefined || found === "broken" ? [] : found
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  const code = found === undefined ? nameError : found === "broken" ? serverFailure : 0
  head.writeUInt16BE(0x8180 | code, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(answers.length, 6)
  const resources = answers.map((bytes) =>
    Buffer.from([0xc0, 12, 0, bytes.length === 4 ? 1 : 28, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes])
  )
  return Buffer.concat([head, question, ...resources])
}

const loopback6 = [...Buffer.alloc(15), 1]
const records: Records = {
  "both.example": {
    A: [
      [127, 0, 0, 1],
      [10, 0, 0, 1]
    ],
    AAAA: [loopback6]
  },
  "only4.example": { A: [[127, 0, 0, 1]] },
  "only6.example": { AAAA: [loopback6] },
  "half.example": { A: [[127, 0, 0, 1]], AAAA: "broken" },
  "none.example": {},
  "broken.example": { A: "broken", AAAA: "broken" },
  "silent.example": { A: "silence", AAAA: "silence" }
}

/** A name server over these records, and the first question that it left without an answer. */
const served = Effect.gen(function* () {
  const waiting = yield* Deferred.make<void>()
  const socket = createSocket("udp4")
  socket.on("message", (query: Buffer, from: RemoteInfo) => {
    const answer = reply(query, records)
    if (answer === undefined) Deferred.unsafeDone(waiting, Effect.void)
    else socket.send(answer, from.port, from.address)
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => {
      socket.bind(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.async<void>((resume) => void socket.close(() => resume(Effect.void)))
  )
  return { names: makeNames([`127.0.0.1:${socket.address().port}`]), waiting: Deferred.await(waiting) }
})

describe("a name", () => {
  const known: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["both.example", ["127.0.0.1", "10.0.0.1", "::1"]],
    ["both.example.", ["127.0.0.1", "10.0.0.1", "::1"]],
    ["only4.example", ["127.0.0.1"]],
    ["only6.example", ["::1"]],
    ["half.example", ["127.0.0.1"]]
  ]
  it.scopedLive.each(known)("resolves to its addresses of both families: %s", function* ([name, addresses]) {
    const { names } = yield* served
    assert.deepStrictEqual([...(yield* names(name))].toSorted(), addresses.toSorted())
  })

  const unknown = [
    "none.example",
    "broken.example",
    "silent.example",
    "unknown.example",
    "",
    "no name",
    "x".repeat(300)
  ]
  it.scopedLive.each(unknown)("without an address fails: '%s'", function* (name) {
    const { names } = yield* served
    assert.instanceOf(yield* Effect.flip(names(name)), Error)
  })

  it.scopedLive("is no longer looked up after an interruption", function* () {
    const { names, waiting } = yield* served
    const asking = yield* Effect.fork(names("silent.example"))
    yield* waiting
    const exit = yield* Fiber.interrupt(asking)
    assert.isTrue(exit._tag === "Failure")
  })
})
