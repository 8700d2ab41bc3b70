import { Effect, Either, type Scope } from "effect"
import type { ChatAnswer } from "../../domain/Chat.ts"
import type { ProviderAccount } from "../../domain/Model.ts"
import type { ChatPull, ProviderFailure } from "../../services/routing/Provider.ts"
import { decodingFailure, protocolFailure, withSpent } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, type Fields, parseAnswer } from "../client/Json.ts"
import { withReason } from "../client/Reason.ts"
import type { UpstreamRequest, UpstreamStream } from "../client/Upstream.ts"
import { decodeSafely, isJson } from "../client/UpstreamResponse.ts"
import { eventsOf, joinEvents } from "./Answer.ts"
import type { ChatCall, ChatFormat } from "./ChatFormat.ts"
import { type ChatDecoder, chatPull, drain, holdsEvents, streamOf } from "./ChatStream.ts"
import { keepEvents, keepNative, withNativeEvents } from "./NativeEvents.ts"
import { cutAnswer, cutPull } from "./StopSequences.ts"
import { renameAnswer, renamePull } from "./ToolNames.ts"

type FailureOf = (account: ProviderAccount, response: UpstreamResponse, nowMillis: number) => ProviderFailure

/** Reads answers of a good status. A host may answer any request in one piece or with a stream, under any content type. */
export const makeDecoding = <Options, Quirks extends object>(
  format: ChatFormat<Options, Quirks>,
  failureOf: FailureOf,
  fail: (call: ChatCall<Options, Quirks>, response: UpstreamResponse) => Effect.Effect<never, ProviderFailure>
) => {
  type Call = ChatCall<Options, Quirks>

  const stopsOf = ({ native, options, request }: Call) =>
    native === undefined ? (format.ownStops?.(request, options) ?? []) : []

  const decodeWhole = <A>(
    call: Call,
    response: UpstreamResponse,
    body: unknown,
    view: (answer: ChatAnswer) => A
  ): Effect.Effect<A, ProviderFailure> => {
    const fields = asFields(body)
    const error = format.errorIn(fields)
    const spend = (failure: ProviderFailure) => withSpent(failure, format.usageIn(fields, call))
    if (error !== undefined) return Effect.mapError(fail(call, { ...response, body: JSON.stringify(error) }), spend)
    return Either.match(format.decode(body, call), {
      onLeft: (wrong) =>
        Effect.fail(
          spend(typeof wrong === "string" ? protocolFailure(call.route.provider, response.status, wrong) : wrong)
        ),
      onRight: (answer) => Effect.succeed(view(answer))
    })
  }

  /** An event has no headers, hence no Retry-After. */
  const failureIn = ({ request, route }: Call, error: Fields) => {
    const body = JSON.stringify(error)
    return withReason(failureOf(route.provider, { status: 200, headers: {}, body }, 0), body, route, request.model)
  }

  const decoderOf = (call: Call, body: UpstreamRequest["body"]) =>
    format.decoder(call, body, (error) => failureIn(call, error))

  const read = (call: Call, decoder: ChatDecoder, stream: UpstreamStream) =>
    chatPull(
      stream,
      decoder,
      {
        decode: (event) => {
          const error = event.type === "error" ? event : format.errorIn(event)
          return error && withSpent(failureIn(call, error), format.usageIn(event, call))
        },
        protocol: (what) => protocolFailure(call.route.provider, 200, what),
        defect: (thrown) => decodingFailure(call.route.provider, 200, thrown)
      },
      {
        isExpected: isJson(stream),
        decode: (body) =>
          decodeSafely(call.route.provider, stream, () =>
            decodeWhole(call, { ...stream, body }, parseAnswer(body, false), eventsOf)
          )
      }
    )

  /** As the client sees it. */
  const present = (call: Call, answer: ChatAnswer, body: Fields): ChatAnswer => ({
    ...renameAnswer(cutAnswer(answer, stopsOf(call)), call.names),
    ...keepNative(call, format.native, body)
  })

  const assemble = (call: Call, response: UpstreamResponse) => {
    const kept: Array<Fields> = []
    const decoder = decoderOf(call, undefined)
    const events = drain(read(call, call.native ? keepEvents(decoder, kept) : decoder, streamOf(response)))
    return Effect.map(events, (events) => present(call, joinEvents(events), format.native?.assemble(kept) ?? {}))
  }

  return {
    decode: (call: Call, response: UpstreamResponse): Effect.Effect<ChatAnswer, ProviderFailure> => {
      if (holdsEvents(response.body)) return assemble(call, response)
      const body = parseAnswer(response.body, call.native !== undefined)
      return decodeWhole(call, response, body, (answer) => present(call, answer, asFields(body)))
    },
    /** `body`: of the request. */
    pull: (
      call: Call,
      body: UpstreamRequest["body"],
      stream: UpstreamStream
    ): Effect.Effect<ChatPull, never, Scope.Scope> => {
      const translating = decoderOf(call, body)
      const decoder = call.native && format.native ? withNativeEvents(translating, format.native, call) : translating
      const isCountable = () => decoder.isCountable?.() === true
      return Effect.map(read(call, decoder, stream), (pull) =>
        renamePull(cutPull(pull, stopsOf(call), isCountable), call.names)
      )
    }
  }
}
