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
  withSpent
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, type Fields, jsonBody, parseAnswer, parseJson, pick } from "../client/Json.ts"
import { withReason } from "../client/Reason.ts"
import type { OptionsDecoder } from "../client/RouteOptions.ts"
import { Upstream, type UpstreamRequest, type UpstreamStream } from "../client/Upstream.ts"
import { collect, decodeSafely, failWith, isJson, isPage, isSuccess } from "../client/UpstreamResponse.ts"
import { eventsOf, joinEvents } from "./Answer.ts"
import { type ChatDecoder, chatPull, chatPullOf, drain, holdsEvents, streamOf } from "./ChatStream.ts"
import { declinesFormat, fitRequest } from "./Fitting.ts"
import { keepEvents, keepNative, type NativeFields, withNativeEvents } from "./NativeEvents.ts"
import { cutAnswer, cutPull } from "./StopSequences.ts"
import { type ClientNames, renameAnswer, renamePull } from "./ToolNames.ts"
import type { WireRules } from "./WireRules.ts"

export interface ChatCall<Options, Quirks = {}> {
  readonly route: Route
  /** The request: fitted to the wire, unless the client's own body is sent. */
  readonly request: ChatRequest
  /** The names of its tools as sent; undefined: the client's own. */
  readonly names?: ClientNames | undefined
  /** Set if the client's own body is sent. */
  readonly native?: NativeRequest | undefined
  readonly options: Options
  readonly isStream: boolean
  readonly quirks: Quirks
  /** The quirks that this call has discovered. */
  readonly adapted: Partial<Quirks>
  readonly newId: () => string
}

export interface Adaptation<Quirks> {
  readonly changes: Partial<Quirks>
  /** Later requests of the route are encoded so from the start. */
  readonly isLasting: boolean
}

/** A wire that is also a way in: bodies written for it are sent as the client wrote them. */
export interface NativeFormat<Options, Quirks> extends NativeFields {
  readonly dialect: NativeRequest["dialect"]
  /** False: the translated request is sent. */
  readonly accepts: (body: NativeRequest["body"], route: Route, options: Options) => boolean
  readonly encode: (call: ChatCall<Options, Quirks>, body: NativeRequest["body"]) => object
  /** How the host counts a prompt, at no charge. */
  readonly counting?: {
    readonly path: string
    /** Fields of the encoded body that are counted. */
    readonly fields: ReadonlyArray<string>
    readonly decode: (body: Fields) => number
  }
}

/** `Quirks`: differences between hosts, or accounts, of this wire. */
interface ChatFormat<Options, Quirks extends object = {}>
  extends Pick<ChatAdapter, "features" | "inlines" | "declines"> {
  readonly options: OptionsDecoder<Options>
  /** What a route accepts; left out, requests are sent as they are. */
  readonly rules?: (options: Options) => WireRules
  readonly unencodable?: (request: ChatRequest) => string | undefined
  readonly endpoint: (call: ChatCall<Options, Quirks>) => Pick<UpstreamRequest, "path" | "authorization" | "headers">
  readonly encode: (call: ChatCall<Options, Quirks>) => object
  readonly native?: NativeFormat<Options, Quirks>
  /** Left: what breaks the protocol. */
  readonly decode: (
    body: unknown,
    call: ChatCall<Options, Quirks>
  ) => Either.Either<ChatAnswer, string | ProviderFailure>
  readonly decoder: (
    call: ChatCall<Options, Quirks>,
    body: UpstreamRequest["body"],
    failureIn: (error: Fields) => ProviderFailure
  ) => ChatDecoder
  /** The error in a body or event of a good status. */
  readonly errorIn: (body: Fields) => Fields | undefined
  /** The usage in a body or an event that has an error. */
  readonly usageIn: (body: Fields, call: ChatCall<Options, Quirks>) => Usage | undefined
  readonly decodeFailure?: DecodeFailure
  readonly quirks: (options: Options) => Quirks
  /** Undefined if the host refused something other than the encoding. */
  readonly adapt?: (call: ChatCall<Options, Quirks>, refusal: UpstreamResponse) => Adaptation<Quirks> | undefined
  /** Stop sequences that the gateway cuts at itself. */
  readonly ownStops?: (request: ChatRequest, options: Options) => ReadonlyArray<string>
}

/** Reads answers of a good status. A host may answer any request in one piece or with a stream, under any content type. */
const makeDecoding = <Options, Quirks extends object>(
  format: ChatFormat<Options, Quirks>,
  failureOf: DecodeFailure,
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

/** Numbers that the gateway writes into a client's own body. */
const caps = ["max_output_tokens", "max_tokens", "max_tool_calls"]

/** A host may answer a stream's request in one piece, and any other with a stream. */
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
    const learnt = new WeakMap<Route, Quirks>()

    const nativeOf = (route: Route, { native }: ChatRequest, options: Options) => {
      if (native === undefined || native.dialect !== format.native?.dialect) return undefined
      return format.native.accepts(native.body, route, options) ? native : undefined
    }

    const write = ({ native, request }: Call, value: object) =>
      jsonBody(keepSource(native?.body, value, caps), request.isLarge === true)

    const encode = (call: Call): Encoded => {
      const value = call.native && format.native ? format.native.encode(call, call.native.body) : format.encode(call)
      return { call, body: write(call, value) }
    }

    const begin = (route: Route, request: ChatRequest, isStream: boolean): Effect.Effect<Encoded, ProviderFailure> => {
      const obstacle = format.unencodable?.(request)
      if (obstacle !== undefined) return unsentFailure(route, obstacle)
      const options = format.options.of(route)
      const quirks = learnt.get(route) ?? format.quirks(options)
      const native = nativeOf(route, request, options)
      const rules = native === undefined ? format.rules?.(options) : undefined
      const fitted = rules === undefined ? undefined : fitRequest(request, rules)
      const call: Call = {
        route,
        request: fitted?.request ?? request,
        names: fitted?.names,
        native,
        options,
        isStream,
        quirks,
        adapted: {},
        newId
      }
      return Effect.succeed(encode(call))
    }

    const remember = ({ options, route }: Call, changes: Partial<Quirks>) => {
      learnt.set(route, { ...(learnt.get(route) ?? format.quirks(options)), ...changes })
    }

    const adapt = ({ body, call }: Encoded, refusal: UpstreamResponse): Encoded | undefined => {
      const found = format.adapt?.(call, refusal)
      if (found === undefined) return undefined
      const { changes, isLasting } = found
      if (isLasting) remember(call, changes)
      const quirks = { ...call.quirks, ...changes }
      const adapted = encode({ ...call, quirks, adapted: { ...call.adapted, ...changes } })
      return adapted.body === body ? undefined : adapted
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
          const adapted = adapt(encoded, response)
          return adapted === undefined ? fail(call, response) : send(adapted, attempt)
        })
      })

    const open = (encoded: Encoded): Effect.Effect<ChatPull, ProviderFailure, Scope.Scope> =>
      Effect.flatMap(upstream.open(requestOf(encoded)), (stream) => {
        const { call } = encoded
        if (isSuccess(stream) && !isPage(stream)) return pull(call, encoded.body, stream)
        return Effect.flatMap(collect(stream), (response) =>
          decodeSafely(call.route.provider, response, () => {
            if (isSuccess(response)) return Effect.map(decode(call, response), (answer) => chatPullOf(eventsOf(answer)))
            const adapted = adapt(encoded, response)
            return adapted === undefined ? fail(call, response) : open(adapted)
          })
        )
      })

    const complete = (route: Route, request: ChatRequest, attempt?: CurrentAttempt) =>
      Effect.flatMap(begin(route, request, false), (encoded) => send(encoded, attempt))

    const declines = (route: Route, request: ChatRequest): string | undefined => {
      const declined = format.declines?.(route, request)
      if (declined !== undefined || request.responseFormat === undefined) return declined
      const rules = format.rules?.(format.options.of(route))
      return rules !== undefined && declinesFormat(request.responseFormat, rules) ? "response_format" : undefined
    }

    const countTokens = (route: Route, request: ChatRequest): Effect.Effect<number, ProviderFailure> =>
      Effect.flatMap(begin(route, request, false), ({ call }) => {
        const { native } = format
        if (native?.counting === undefined || call.native === undefined) {
          return Effect.fail(unsentFailure(route, "it counts no tokens of this request"))
        }
        const { decode, fields, path } = native.counting
        const counted = write(call, pick(asFields(native.encode(call, call.native.body)), fields))
        return Effect.flatMap(upstream.post({ ...requestOf({ call, body: counted }), path }), (response) =>
          isSuccess(response) ? Effect.succeed(decode(asFields(parseJson(response.body)))) : fail(call, response)
        )
      })

    return {
      features: format.features,
      inlines: format.inlines,
      declines,
      acceptsNative: (route, native) =>
        native.dialect === format.native?.dialect &&
        format.native.accepts(native.body, route, format.options.of(route)),
      ...(format.native?.counting === undefined ? undefined : { countTokens }),
      complete: (route, request) => Effect.suspend(() => complete(route, request)),
      completeWithin: (attempt, route, request) => complete(route, request, attempt),
      stream: (route, request) => Effect.suspend(() => Effect.flatMap(begin(route, request, true), open))
    }
  })

export const makeChatProvider = <Options, Quirks extends object>(
  adapter: string,
  format: ChatFormat<Options, Quirks>
): Effect.Effect<Provider, never, Upstream> =>
  Effect.map(makeChatAdapter(format), (chat) => ({ adapter, options: format.options.decode, chat }))
