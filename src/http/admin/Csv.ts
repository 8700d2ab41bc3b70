import { HttpApiSchema, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Chunk, Effect, Schema, Stream } from "effect"
import { currentTurns } from "../../services/admin/ReadTurns.ts"

export const csvBody = (description: string) =>
  Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/csv" })).annotations({ description })

const toText = (lines: ReadonlyArray<string>) => lines.map((line) => `${line}\r\n`).join("")

/**
 * As the client reads; the first rows are there before the head is sent, so that a failure has its status. A later one
 * breaks the connection off: an end would pass for the whole.
 */
export const streamCsv = <R>(file: string, lines: Stream.Stream<ReadonlyArray<string>, never, R>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const turns = yield* currentTurns
    const context = yield* Effect.context<R>()
    const pull = Effect.provide(yield* Stream.toPull(lines), context)
    const later = turns.download(turns.take(pull))
    const next = Effect.catchAll(pull, () => Effect.succeed(Chunk.empty<ReadonlyArray<string>>()))
    const first = yield* turns.download(turns.takeSoon(Effect.all([next, next])))
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
