import { createServer } from "node:http"
import { HttpServer } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Deferred, Effect, Layer, Stream } from "effect"
import { streamCsv } from "../../../src/http/CsvAnswers.ts"
import { CurrentActor } from "../../../src/services/admin/Actor.ts"
import { ReadLimiter } from "../../../src/services/admin/ReadLimiter.ts"
import { eventually } from "../../database/EmbeddedDatabase.ts"
import { assert, describe, liveOver } from "../../harness/It.ts"

const line = "x".repeat(100_000)

const served = Effect.fnUntraced(function* <E>(lines: Stream.Stream<ReadonlyArray<string>, E>) {
  yield* HttpServer.serveEffect(streamCsv("rows.csv", Stream.orDie(lines)))
  const { address } = yield* HttpServer.HttpServer
  return address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : ""
})

const test = liveOver(
  Layer.mergeAll(
    NodeHttpServer.layer(() => createServer(), { port: 0 }),
    ReadLimiter.layer,
    CurrentActor.commandLine("ada")
  )
)

describe("a CSV stream", () => {
  test("goes on as its client reads, and ends when the client leaves", function* () {
    let pulled = 0
    const ended = yield* Deferred.make<void>()
    const endless = Stream.repeatEffect(Effect.sync(() => [line, String(pulled++)])).pipe(
      Stream.ensuring(Deferred.succeed(ended, undefined))
    )
    const url = yield* served(endless)
    const leaving = new AbortController()
    const response = yield* Effect.promise(() => fetch(url, { signal: leaving.signal }))
    assert.strictEqual(response.headers.get("content-disposition"), 'attachment; filename="rows.csv"')
    let before = -1
    yield* eventually("the stream waits", () => {
      const waits = pulled === before
      before = pulled
      return waits
    })
    assert.isBelow(pulled, 1000)
    leaving.abort()
    yield* Deferred.await(ended)
  })

  test("that fails later breaks the connection off, since an end would pass for the whole", function* () {
    const pages = Stream.make([line], [line], [line]).pipe(Stream.rechunk(1))
    const url = yield* served(Stream.concat(pages, Stream.fail("the database is away")))
    const response = yield* Effect.promise(() => fetch(url))
    assert.strictEqual(response.status, 200)
    const told = yield* Effect.promise(() =>
      response
        .text()
        .then(() => "whole")
        .catch(() => "broken")
    )
    assert.strictEqual(told, "broken")
  })

  test("that fails at once has the failure's status", function* () {
    const url = yield* served(Stream.concat(Stream.make([line]), Stream.fail("the database is away")))
    const response = yield* Effect.promise(() => fetch(url))
    assert.strictEqual(response.status, 500)
  })
})
