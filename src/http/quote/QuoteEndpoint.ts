import { Effect } from "effect"
import { BodyTooLarge, type Failure, InvalidRequest } from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { VideoJobs } from "../../services/videos/VideoJobs.ts"
import { json } from "../Answer.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import { findScopeRefusal } from "../admission/ModelAccess.ts"
import { Limits, readDocument } from "../body/BodyReader.ts"
import type { JsonObject } from "../body/Guards.ts"
import type { ChatDialect } from "../chat/ChatDialect.ts"
import { makeTaskDecoder } from "../chat/ChatTasks.ts"
import { renameField } from "../errors/FieldNames.ts"
import { editImage, generateImage, makeImageReader } from "../images/ImageBody.ts"
import { decodeReferences } from "../images/ReferenceImages.ts"
import { decoder } from "../schema/Decoding.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { createVideo, makeVideoReader } from "../videos/VideoBody.ts"
import { chatOffer, createQuote, imageOffer, type Offer, QuoteRequest, quoteJson, videoOffer } from "./Quote.ts"

interface Asked {
  readonly admission: Admission
  readonly body: JsonObject
  /** Of the whole JSON. */
  readonly bytes: number
}

/** What an endpoint offers to a body, with the errors that come before its hold. */
interface Quoter {
  readonly surface: Surface
  readonly offer: (asked: Asked) => Effect.Effect<Offer & { readonly hasFittedHold?: boolean | undefined }, Failure>
}

export const decodeQuoteBody = decoder(QuoteRequest)

/** Holds and charges nothing, asks no provider, and leaves no row in the log. */
export const quoteEndpoint = Effect.fnUntraced(function* (dialects: ReadonlyArray<ChatDialect>) {
  const chat = yield* ChatCompletions
  const decodeTask = yield* makeTaskDecoder
  const ledger = yield* Ledger
  const limits = yield* Limits
  const readImage = yield* makeImageReader
  const readVideo = yield* makeVideoReader
  const videos = yield* VideoJobs

  const quoteChat = (dialect: ChatDialect): Quoter => ({
    surface: "chat",
    offer: ({ admission, body, bytes }) =>
      Effect.gen(function* () {
        const limitBytes = limits.chatBodyBytes
        if (bytes > limitBytes) return yield* new BodyTooLarge({ limitBytes })
        const task = yield* decodeTask(dialect, admission, { value: body, bytes })
        return { ...chatOffer(task.model, yield* chat.quote(task)), hasFittedHold: task.hasFittedHold }
      }).pipe(
        Effect.catchTag(
          "InvalidRequest",
          (refusal) => new InvalidRequest(renameField(refusal, dialect.fieldNames ?? {}))
        )
      )
  })

  const quoteImage = (needsReference: boolean): Quoter => ({
    surface: "image",
    offer: Effect.fnUntraced(function* ({ admission, body }) {
      const found = yield* readImage(admission, yield* decodeReferences(body), needsReference)
      const { model, variant } = yield* found.offer
      return imageOffer(model, variant)
    })
  })

  const quoteVideo: Quoter = {
    surface: "video",
    offer: Effect.fnUntraced(function* ({ admission, body }) {
      const { offer, params } = yield* readVideo(admission, body)
      const { model, seconds } = yield* offer
      return videoOffer(model, yield* videos.quote({ model, params, seconds }))
    })
  }

  const quoters: ReadonlyMap<string, Quoter> = new Map([
    ...dialects.map((dialect) => [dialect.path, quoteChat(dialect)] as const),
    [servedPath(generateImage), quoteImage(false)],
    [servedPath(editImage), quoteImage(true)],
    [servedPath(createVideo), quoteVideo]
  ])

  const endpoint: Endpoint = {
    path: servedPath(createQuote),
    surface: "chat",
    checksScope: true,
    admitsWithHold: false,
    handle: Effect.fnUntraced(function* (admission) {
      const { headers, record } = admission
      record.add({ type: "unlogged" })
      const { bytes, value } = yield* readDocument(admission, Math.max(limits.chatBodyBytes, limits.mediaBodyBytes))
      const { body, endpoint: path } = yield* decodeQuoteBody(value)
      const quoter = quoters.get(path)
      if (quoter === undefined) return yield* Effect.dieMessage(`nothing quotes ${path}`)
      const { caller } = record.facts
      const { isDisputed, key, org } = caller
      const refusal = findScopeRefusal(caller, quoter.surface)
      if (refusal !== undefined) return yield* refusal
      const offer = yield* quoter.offer({ admission, body, bytes })
      const { hasFittedHold, upTo } = offer
      const affordable = yield* ledger.affords({ org, key, upTo, hasFittedHold, isDisputed })
      return json(200, quoteJson(offer, affordable), headers())
    })
  }
  return endpoint
})
