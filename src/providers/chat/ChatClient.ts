import { Effect, type Scope } from "effect"
import type { ChatAnswer, ChatRequest } from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import type { Route } from "../../domain/Model.ts"
import type {
  ChatAdapter,
  ChatPull,
  CurrentAttempt,
  Provider,
  ProviderFailure
} from "../../services/routing/Provider.ts"
import { flatMapEager } from "../../services/runtime/Fibers.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { decodeFailure, unsentFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, jsonBody, parseJson, pick } from "../client/Json.ts"
import { withReason } from "../client/Reason.ts"
import { Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { collect, decodeSafely, failWith, isPage, isSuccess } from "../client/UpstreamResponse.ts"
import { eventsOf } from "./Answer.ts"
import type { ChatCall, ChatFormat } from "./ChatFormat.ts"
import { chatPullOf } from "./ChatStream.ts"
import { makeDecoding } from "./Decoding.ts"
import { fitRequest } from "./Fitting.ts"
import { declinesFormat } from "./ToolFitting.ts"

export type { Adaptation, ChatCall, NativeFormat } from "./ChatFormat.ts"

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
      flatMapEager(begin(route, request, false), (encoded) => send(encoded, attempt))

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
      stream: (route, request) => Effect.suspend(() => flatMapEager(begin(route, request, true), open))
    }
  })

export const makeChatProvider = <Options, Quirks extends object>(
  adapter: string,
  format: ChatFormat<Options, Quirks>
): Effect.Effect<Provider, never, Upstream> =>
  Effect.map(makeChatAdapter(format), (chat) => ({ adapter, options: format.options.decode, chat }))
