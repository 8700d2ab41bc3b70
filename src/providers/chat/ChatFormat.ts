import type { Either } from "effect"
import type { ChatAnswer, ChatRequest, NativeRequest, Usage } from "../../domain/Chat.ts"
import type { ProviderAccount, Route } from "../../domain/Model.ts"
import type { ChatAdapter, ProviderFailure } from "../../services/routing/Provider.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import type { Fields } from "../client/Json.ts"
import type { OptionsDecoder } from "../client/RouteOptions.ts"
import type { UpstreamRequest } from "../client/Upstream.ts"
import type { ChatDecoder } from "./ChatStream.ts"
import type { NativeFields } from "./NativeEvents.ts"
import type { ClientNames } from "./ToolNames.ts"
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
export interface ChatFormat<Options, Quirks extends object = {}>
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
  readonly decodeFailure?: (account: ProviderAccount, response: UpstreamResponse, nowMillis: number) => ProviderFailure
  readonly quirks: (options: Options) => Quirks
  /** Undefined if the host refused something other than the encoding. */
  readonly adapt?: (call: ChatCall<Options, Quirks>, refusal: UpstreamResponse) => Adaptation<Quirks> | undefined
  /** Stop sequences that the gateway cuts at itself. */
  readonly ownStops?: (request: ChatRequest, options: Options) => ReadonlyArray<string>
}
