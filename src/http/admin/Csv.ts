import { HttpApiSchema, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Chunk, Effect, Schema, Stream } from "effect"
import { inTurn, inTurnSoon } from "./Turns.ts"

export const csvBody = (description: string) =>
  Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/csv" })).annotations({ description })

const toText = (lines: ReadonlyArray<string>) => lines.map((line) => `${line}\r\n`).join("")

/** One page at a time for all downloads, since customers' requests need the database and the loop too. */
const downloads = Effect.unsafeMakeSemaphore(1)

/**
 * As the client reads; the first rows are there before the head is sent, so that a failure has its status. A later one
 * breaks the connection off: an end would pass for the whole.
 */
export const streamCsv = <R>(file: string, lines: Stream.Stream<ReadonlyArray<string>, never, R>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const context = yield* Effect.context<R>()
    const pull = Effect.provide(yield* Stream.toPull(lines), context)
    const later = downloads.withPermits(1)(inTurn(pull))
    const next = Effect.catchAll(pull, () => Effect.succeed(Chunk.empty<ReadonlyArray<string>>()))
    const first = yield* downloads.withPermits(1)(inTurnSoon(Effect.all([next, next])))
    const body = Stream.concat(
      Stream.fromChunk(Chunk.flatten(Chunk.fromIterable(first))),
      Stream.repeatEffectChunkOption(later)
    ).pipe(
      Stream.map(toText),
      Stream.encodeText,
      Stream.onError(() => Effect.sync(() => NodeHttpServerRequest.toServerResponse(request).destroy()))
    )
    return HttpServerResponse.stream(body, {
      contentType: "text/csv; charset=utf-8",
      headers: { "content-disposition": `attachment; filename="${file}"` }
    })
  })
