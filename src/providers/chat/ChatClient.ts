import { Effect, Either, type Scope } from "effect"
import type { ChatAnswer, ChatRequest, NativeRequest, Usage } from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import type { Route } from "../../domain/Model.ts"
import type {
  ChatAdapter,
  ChatPull,
  CurrentAttempt,
  Provider,
  ProviderFailure
} from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import {
  type DecodeFailure,
  decodeFailure,
  decodingFailure,
  protocolFailure,
  unsentFailure,
  withReason,
  withSpent
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, type Fields, jsonBody, parseAnswer, parseJson, pick } from "../client/JsonFields.ts"
import type { OptionsDecoder } from "../client/RouteOptions.ts"
import { Upstream, type UpstreamRequest, type UpstreamStream } from "../client/Upstream.ts"
import { collect, decodeSafely, failWith, isJson, isPage, isSuccess } from "../client/UpstreamResponse.ts"
import { eventsOf, joinEvents } from "./AnswerReaders.ts"
import { declinesFormat, fitRequest } from "./Fitting.ts"
import { type NativeFields, recordEvents, toNativeAnswer, withNativeEvents } from "./NativeEvents.ts"
import { truncateAnswer, truncatePull } from "./StopSequences.ts"
import { type ClientNames, renameAnswer, renamePull } from "./ToolNames.ts"
import type { WireRules } from "./WireRules.ts"
import { type ChatDecoder, chatPull, chatPullOf, drain, isEventStream, streamOf } from "./WireStream.ts"

export interface ChatCall<Options, Quirks = {}> {
  readonly route: Route
  /** The request, fitted to the wire format unless the client's own body is sent. */
  readonly request: ChatRequest
  /** Maps sent tool names to the client's. Undefined if none was changed. */
  readonly names?: ClientNames | undefined
  /** Set if the client's own body is sent. */
  readonly native?: NativeRequest | undefined
  readonly options: Options
  readonly isStream: boolean
  readonly quirks: Quirks
  /** The quirks that this call has discovered. */
  readonly discoveredQuirks: Partial<Quirks>
  readonly newId: () => string
}

export interface Adaptation<Quirks> {
  readonly changes: Partial<Quirks>
  /** Whether later requests of the route use the changes from the start. */
  readonly isPermanent: boolean
}

/** A wire format that is also a dialect of clients. The gateway forwards their bodies mostly unchanged. */
export interface NativeFormat<Options, Quirks> extends NativeFields {
  readonly dialect: NativeRequest["dialect"]
  /** Returns false if the translated request must be sent instead. */
  readonly accepts: (body: NativeRequest["body"], route: Route, options: Options) => boolean
  readonly encode: (call: ChatCall<Options, Quirks>, body: NativeRequest["body"]) => object
  /** The provider's endpoint that counts the tokens of a prompt free of charge. */
  readonly tokenCounting?: {
    readonly path: string
    /** Fields of the encoded body that the endpoint gets. */
    readonly fields: ReadonlyArray<string>
    readonly decode: (body: Fields) => number
  }
}

/** The definition of a wire format. `Quirks` are the differences between providers, or accounts, of this wire format. */
interface ChatFormat<Options, Quirks extends object = {}>
  extends Pick<ChatAdapter, "features" | "requiresInlineImages" | "findUnsupportedField"> {
  readonly optionsDecoder: OptionsDecoder<Options>
  /** What a route accepts. Without it, requests are sent unchanged. */
  readonly rules?: (options: Options) => WireRules
  /** Returns why the wire format cannot encode the request. The router then tries another route. */
  readonly unsupportedReason?: (request: ChatRequest) => string | undefined
  /** Returns the path below `base_url`, the credential's headers, and further headers. */
  readonly endpoint: (call: ChatCall<Options, Quirks>) => Pick<UpstreamRequest, "path" | "authorization" | "headers">
  /** Returns the body. Contains `request.stop` only if the provider supports stop sequences. */
  readonly encode: (call: ChatCall<Options, Quirks>) => object
  readonly native?: NativeFormat<Options, Quirks>
  /** Decodes a complete answer. A `Left` is a text that describes a protocol error. */
  readonly decode: (
    body: unknown,
    call: ChatCall<Options, Quirks>
  ) => Either.Either<ChatAnswer, string | ProviderFailure>
  /** Makes the decoder of one stream. `body` is the request's; `failureIn` classifies an error that the decoder finds. */
  readonly decoder: (
    call: ChatCall<Options, Quirks>,
    body: UpstreamRequest["body"],
    failureIn: (error: Fields) => ProviderFailure
  ) => ChatDecoder
  /** Returns the error in a body or event with a success status. */
  readonly errorIn: (body: Fields) => Fields | undefined
  /** Returns the usage in a body or event that contains an error. */
  readonly usageIn: (body: Fields, call: ChatCall<Options, Quirks>) => Usage | undefined
  /** Classifies an error response. The default reads OpenAI's error format. */
  readonly decodeFailure?: DecodeFailure
  /** Returns the initial quirks of a route. */
  readonly quirks: (options: Options) => Quirks
  /** Returns the quirks that a refusal reveals. Undefined if the provider refused something other than the encoding. */
  readonly adapt?: (call: ChatCall<Options, Quirks>, refusal: UpstreamResponse) => Adaptation<Quirks> | undefined
  /** Stop sequences that the gateway applies itself. */
  readonly localStops?: (request: ChatRequest, options: Options) => ReadonlyArray<string>
}

/**
 * Returns functions that decode responses with a success status. A provider may send any answer in one piece or as a
 * stream, with any content type.
 */
const makeDecoding = <Options, Quirks extends object>(
  format: ChatFormat<Options, Quirks>,
  failureOf: DecodeFailure,
  fail: (call: ChatCall<Options, Quirks>, response: UpstreamResponse) => Effect.Effect<never, ProviderFailure>
) => {
  type Call = ChatCall<Options, Quirks>

  const stopsOf = ({ native, options, request }: Call) =>
    native === undefined ? (format.localStops?.(request, options) ?? []) : []

  const decodeBody = <A>(
    call: Call,
    response: UpstreamResponse,
    body: unknown,
    convert: (answer: ChatAnswer) => A
  ): Effect.Effect<A, ProviderFailure> => {
    const fields = asFields(body)
    const error = format.errorIn(fields)
    const addSpent = (failure: ProviderFailure) => withSpent(failure, format.usageIn(fields, call))
    if (error !== undefined) return Effect.mapError(fail(call, { ...response, body: JSON.stringify(error) }), addSpent)
    return Either.match(format.decode(body, call), {
      onLeft: (problem) =>
        Effect.fail(
          addSpent(
            typeof problem === "string" ? protocolFailure(call.route.provider, response.status, problem) : problem
          )
        ),
      onRight: (answer) => Effect.succeed(convert(answer))
    })
  }

  /** Classifies an error inside a body or event, without headers such as Retry-After. */
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
        protocol: (detail) => protocolFailure(call.route.provider, 200, detail),
        defect: (thrown) => decodingFailure(call.route.provider, 200, thrown)
      },
      {
        isExpected: isJson(stream),
        decode: (body) =>
          decodeSafely(call.route.provider, stream, () =>
            decodeBody(call, { ...stream, body }, parseAnswer(body, false), eventsOf)
          )
      }
    )

  const toClientAnswer = (call: Call, answer: ChatAnswer, body: Fields): ChatAnswer => ({
    ...renameAnswer(truncateAnswer(answer, stopsOf(call)), call.names),
    ...toNativeAnswer(call, format.native, body)
  })

  const assemble = (call: Call, response: UpstreamResponse) => {
    const nativeEvents: Array<Fields> = []
    const decoder = decoderOf(call, undefined)
    const events = drain(read(call, call.native ? recordEvents(decoder, nativeEvents) : decoder, streamOf(response)))
    return Effect.map(events, (events) =>
      toClientAnswer(call, joinEvents(events), format.native?.assemble(nativeEvents) ?? {})
    )
  }

  return {
    decode: (call: Call, response: UpstreamResponse): Effect.Effect<ChatAnswer, ProviderFailure> => {
      if (isEventStream(response.body)) return assemble(call, response)
      const body = parseAnswer(response.body, call.native !== undefined)
      return decodeBody(call, response, body, (answer) => toClientAnswer(call, answer, asFields(body)))
    },
    /** Returns the pull of a stream's events. `body` is the body of the request. */
    pull: (
      call: Call,
      body: UpstreamRequest["body"],
      stream: UpstreamStream
    ): Effect.Effect<ChatPull, never, Scope.Scope> => {
      const translatingDecoder = decoderOf(call, body)
      const decoder =
        call.native && format.native ? withNativeEvents(translatingDecoder, format.native, call) : translatingDecoder
      const isCountable = () => decoder.isCountable?.() === true
      return Effect.map(read(call, decoder, stream), (pull) =>
        renamePull(truncatePull(pull, stopsOf(call), isCountable), call.names)
      )
    }
  }
}

/** Numbers of a native body that the gateway may change, so their original text is not sent. */
const capFields = ["max_output_tokens", "max_tokens", "max_tool_calls"]

/** Makes a chat adapter from a `ChatFormat`. */
export const makeChatAdapter = <Options, Quirks extends object>(
  format: ChatFormat<Options, Quirks>
): Effect.Effect<ChatAdapter, never, Upstream> =>
  Effect.gen(function* () {
    type Call = ChatCall<Options, Quirks>
    type Encoded = { readonly call: Call; readonly body: Exclude<UpstreamRequest["body"], undefined> }
    const upstream = yield* Upstream
    const ids = yield* Ids
    const newId = () => ids.prefixed("call")
    const failureOf = format.decodeFailure ?? decodeFailure
    const quirksByRoute = new WeakMap<Route, Quirks>()

    const nativeOf = (route: Route, { native }: ChatRequest, options: Options) => {
      if (native === undefined || native.dialect !== format.native?.dialect) return undefined
      return format.native.accepts(native.body, route, options) ? native : undefined
    }

    const serialize = ({ native, request }: Call, value: object) =>
      jsonBody(keepSource(native?.body, value, capFields), request.isLarge === true)

    const encode = (call: Call): Encoded => {
      const value = call.native && format.native ? format.native.encode(call, call.native.body) : format.encode(call)
      return { call, body: serialize(call, value) }
    }

    const prepare = (
      route: Route,
      request: ChatRequest,
      isStream: boolean
    ): Effect.Effect<Encoded, ProviderFailure> => {
      const unsupportedReason = format.unsupportedReason?.(request)
      if (unsupportedReason !== undefined) return unsentFailure(route, unsupportedReason)
      const options = format.optionsDecoder.of(route)
      const quirks = quirksByRoute.get(route) ?? format.quirks(options)
      const native = nativeOf(route, request, options)
      const rules = native === undefined ? format.rules?.(options) : undefined
      const fittedRequest = rules === undefined ? undefined : fitRequest(request, rules)
      const call: Call = {
        route,
        request: fittedRequest?.request ?? request,
        names: fittedRequest?.names,
        native,
        options,
        isStream,
        quirks,
        discoveredQuirks: {},
        newId
      }
      return Effect.succeed(encode(call))
    }

    const saveQuirks = ({ options, route }: Call, changes: Partial<Quirks>) => {
      quirksByRoute.set(route, { ...(quirksByRoute.get(route) ?? format.quirks(options)), ...changes })
    }

    const adapt = ({ body, call }: Encoded, refusal: UpstreamResponse): Encoded | undefined => {
      const adaptation = format.adapt?.(call, refusal)
      if (adaptation === undefined) return undefined
      const { changes, isPermanent } = adaptation
      if (isPermanent) saveQuirks(call, changes)
      const quirks = { ...call.quirks, ...changes }
      const retry = encode({ ...call, quirks, discoveredQuirks: { ...call.discoveredQuirks, ...changes } })
      return retry.body === body ? undefined : retry
    }

    const requestOf = ({ body, call }: Encoded): UpstreamRequest => ({
      account: call.route.provider,
      ...format.endpoint(call),
      body
    })

    const fail = ({ request, route }: Call, response: UpstreamResponse) =>
      Effect.mapError(failWith(failureOf)(route, response), (failure) =>
        withReason(failure, response.body, route, request.model)
      )

    const { decode, pull } = makeDecoding(format, failureOf, fail)

    const send = (encoded: Encoded, attempt?: CurrentAttempt): Effect.Effect<ChatAnswer, ProviderFailure> =>
      Effect.flatMap(upstream.post(requestOf(encoded), attempt), (response) => {
        const { call } = encoded
        return decodeSafely(call.route.provider, response, () => {
          if (isSuccess(response)) return decode(call, response)
          const retry = adapt(encoded, response)
          return retry === undefined ? fail(call, response) : send(retry, attempt)
        })
      })

    const open = (encoded: Encoded): Effect.Effect<ChatPull, ProviderFailure, Scope.Scope> =>
      Effect.flatMap(upstream.open(requestOf(encoded)), (stream) => {
        const { call } = encoded
        if (isSuccess(stream) && !isPage(stream)) return pull(call, encoded.body, stream)
        return Effect.flatMap(collect(stream), (response) =>
          decodeSafely(call.route.provider, response, () => {
            if (isSuccess(response)) return Effect.map(decode(call, response), (answer) => chatPullOf(eventsOf(answer)))
            const retry = adapt(encoded, response)
            return retry === undefined ? fail(call, response) : open(retry)
          })
        )
      })

    const complete = (route: Route, request: ChatRequest, attempt?: CurrentAttempt) =>
      Effect.flatMap(prepare(route, request, false), (encoded) => send(encoded, attempt))

    const findUnsupportedField = (route: Route, request: ChatRequest): string | undefined => {
      const declinedField = format.findUnsupportedField?.(route, request)
      if (declinedField !== undefined || request.responseFormat === undefined) return declinedField
      const rules = format.rules?.(format.optionsDecoder.of(route))
      return rules !== undefined && declinesFormat(request.responseFormat, rules) ? "response_format" : undefined
    }

    const countTokens = (route: Route, request: ChatRequest): Effect.Effect<number, ProviderFailure> =>
      Effect.flatMap(prepare(route, request, false), ({ call }) => {
        const { native } = format
        if (native?.tokenCounting === undefined || call.native === undefined) {
          return Effect.fail(unsentFailure(route, "the route cannot count the tokens of this request"))
        }
        const { decode, fields, path } = native.tokenCounting
        const countedBody = serialize(call, pick(asFields(native.encode(call, call.native.body)), fields))
        return Effect.flatMap(upstream.post({ ...requestOf({ call, body: countedBody }), path }), (response) =>
          isSuccess(response) ? Effect.succeed(decode(asFields(parseJson(response.body)))) : fail(call, response)
        )
      })

    return {
      features: format.features,
      requiresInlineImages: format.requiresInlineImages,
      findUnsupportedField,
      acceptsNative: (route, native) =>
        native.dialect === format.native?.dialect &&
        format.native.accepts(native.body, route, format.optionsDecoder.of(route)),
      ...(format.native?.tokenCounting === undefined ? undefined : { countTokens }),
      complete: (route, request) => Effect.suspend(() => complete(route, request)),
      completeWithin: (attempt, route, request) => complete(route, request, attempt),
      stream: (route, request) => Effect.suspend(() => Effect.flatMap(prepare(route, request, true), open))
    }
  })

export const makeChatProvider = <Options, Quirks extends object>(
  adapter: string,
  format: ChatFormat<Options, Quirks>
): Effect.Effect<Provider, never, Upstream> =>
  Effect.map(makeChatAdapter(format), (chat) => ({ adapter, options: format.optionsDecoder.decode, chat }))
