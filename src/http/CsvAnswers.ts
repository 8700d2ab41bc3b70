import { HttpApiSchema, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Chunk, Effect, Schema, Stream } from "effect"
import { currentReadSlots } from "../services/admin/ReadLimiter.ts"
import { type Answer, textAnswer } from "./HttpAnswer.ts"

/** Describes a CSV file in the API's schema. */
export const csvBody = (description: string) =>
  Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/csv" })).annotations({ description })

/** Returns the `q` value of a media type in an `accept` header, or 0 if the header lacks the type. */
const weightOf = (accept: string, type: string): number => {
  const entry = new RegExp(`(?:^|,)\\s*${type}\\s*(?:;[^,]*?\\bq=([\\d.]+))?\\s*(?:[,;]|$)`, "i")
  const [match, weight = "1"] = entry.exec(accept) ?? []
  return match === undefined ? 0 : Number(weight)
}

/** Returns whether an `accept` header asks for CSV rather than JSON. */
export const prefersCsv = (accept = ""): boolean => {
  const weight = weightOf(accept, "text/csv")
  return weight > 0 && weight >= weightOf(accept, "application/json")
}

const contentType = "text/csv; charset=utf-8"

/** Returns a 200 response with a complete CSV file. */
export const csvAnswer = (text: string): Answer => textAnswer(200, text, { "content-type": contentType })

const toText = (lines: ReadonlyArray<string>) => lines.map((line) => `${line}\r\n`).join("")

/**
 * Streams rows as fast as the client reads them. The first rows are read before the response head is sent, so an early
 * failure has its own status. A later failure destroys the connection, because a normal end would look complete.
 */
export const streamCsv = <R>(file: string, lines: Stream.Stream<ReadonlyArray<string>, never, R>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const limiter = yield* currentReadSlots
    const context = yield* Effect.context<R>()
    const pullRows = Effect.provide(yield* Stream.toPull(lines), context)
    const pullRest = limiter.download(limiter.take(pullRows))
    const pullBatch = Effect.catchAll(pullRows, () => Effect.succeed(Chunk.empty<ReadonlyArray<string>>()))
    const firstBatches = yield* limiter.download(limiter.runOrBusy(Effect.all([pullBatch, pullBatch])))
    const body = Stream.concat(
      Stream.fromChunk(Chunk.flatten(Chunk.fromIterable(firstBatches))),
      Stream.repeatEffectChunkOption(pullRest)
    ).pipe(
      Stream.map(toText),
      Stream.encodeText,
      Stream.onError(() => Effect.sync(() => NodeHttpServerRequest.toServerResponse(request).destroy()))
    )
    return HttpServerResponse.stream(body, {
      contentType,
      headers: { "content-disposition": `attachment; filename="${file}"` }
    })
  })
