import {
  HttpApi,
  type HttpApiEndpoint,
  type HttpApiGroup,
  HttpApiMiddleware,
  HttpApp,
  HttpBody,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Context, Effect, Option, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { decodeText, isMultipart, receiveBody, receiveUnidentified, requireNoForm } from "../body/BodyReader.ts"
import { Internal, response, responsesAt, TooLarge } from "../errors/ErrorMessages.ts"
import { adminPrefix } from "../schema/Endpoints.ts"

export const BadRequest = response("The request is invalid.", "InvalidRequest", "BodyTooSlow")
export const Unauthenticated = response(
  "The session or the operator's token is missing, invalid or expired.",
  "NotSignedIn"
)
export const Forbidden = responsesAt("operator", {
  403: "The operator's role is too low, or the request comes from another site."
})
const NotFoundAnswer = response(
  "Not found. Without `CONSOLE_PUBLIC`, other machines always get this response.",
  "NotFound",
  "UnknownEndpoint"
)
export const TooManyAttempts = response("Too many failed sign-in attempts.", "SignInLimited")
const RefusedChange = responsesAt("adminChange", {
  409: "The change conflicts with the current state.",
  429: "The organization's members made too many changes in the last minute."
})
const Overloaded = response(
  "The gateway is receiving too many large bodies, or it is stopping.",
  "GatewayBusy",
  "Aborted"
)

const AccessErrors = Schema.Union(
  BadRequest,
  Unauthenticated,
  Forbidden,
  TooManyAttempts,
  NotFoundAnswer,
  TooLarge,
  Overloaded
)

const ReportsBusy = response("Too many concurrent reports, or the report takes too long.", "GatewayBusy")
export const ReadErrors = Schema.Union(BadRequest, NotFoundAnswer, Internal)
export const ReportErrors = Schema.Union(ReadErrors, ReportsBusy)
export const ChangeErrors = Schema.Union(BadRequest, NotFoundAnswer, RefusedChange, Internal)

const options = { provides: CurrentActor, failure: AccessErrors } as const

export class ReadAccess extends HttpApiMiddleware.Tag<ReadAccess>()("gateway/http/ReadAccess", options) {}
export class WriteAccess extends HttpApiMiddleware.Tag<WriteAccess>()("gateway/http/WriteAccess", options) {}
export class OwnerAccess extends HttpApiMiddleware.Tag<OwnerAccess>()("gateway/http/OwnerAccess", options) {}

/** For owners, and for reading by members of any role. */
export class OwnerOrMemberRead extends HttpApiMiddleware.Tag<OwnerOrMemberRead>()(
  "gateway/http/OwnerOrMemberRead",
  options
) {}

/** For owners, and for changes by members with the role write. */
export class OwnerOrMemberWrite extends HttpApiMiddleware.Tag<OwnerOrMemberWrite>()(
  "gateway/http/OwnerOrMemberWrite",
  options
) {}

/** Returns 404 to other machines before the body is read, unless the endpoint is public. */
export class LoopbackAccess extends HttpApiMiddleware.Tag<LoopbackAccess>()("gateway/http/LoopbackAccess", {
  failure: Schema.Union(BadRequest, NotFoundAnswer, TooLarge, Overloaded)
}) {}

/** Returns an API with only this group, because the handlers of a group need no other. */
export const adminApiOf = <Id extends string, Endpoints extends HttpApiEndpoint.HttpApiEndpoint.Any, E, R>(
  group: HttpApiGroup.HttpApiGroup<Id, Endpoints, E, R>
) => HttpApi.make("admin").add(group).prefix(adminPrefix)

const adminBodyBytes = 262_144
/** The limit of a sign-in body. Links and tokens are much shorter. */
const credentialBytes = 16_384

/** Makes the platform use the received body, because its own readers enforce no minimum speed. */
const setBody = (request: HttpServerRequest.HttpServerRequest, bytes: Buffer, text: string): void => {
  Object.defineProperties(request, {
    text: { value: Effect.succeed(text) },
    arrayBuffer: { value: Effect.succeed(bytes) }
  })
}

const receiveIfSent = <E>(receive: Effect.Effect<Buffer, E>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const incoming = NodeHttpServerRequest.toIncomingMessage(request)
    const {
      "content-length": length = "0",
      "content-type": type = "",
      "transfer-encoding": encoding
    } = incoming.headers
    const isSent = Number(length) > 0 || encoding !== undefined
    // Clients may send a form's content type without a body, as `curl --data ""` does.
    if (isSent || isMultipart(type)) yield* requireNoForm(incoming)
    if (!isSent) return
    const bytes = yield* receive
    setBody(request, bytes, yield* decodeText(bytes))
  })

/** Receives the body of an admin request, after authentication and before the platform reads the body. */
export const receiveAdminBody = receiveIfSent(receiveBody(adminBodyBytes))

/** Receives a sign-in body, which contains the credential. */
export const receiveCredential = receiveIfSent(receiveUnidentified(credentialBytes))

/** Returns the failure of a body that is not JSON, for which the platform raises a defect. */
export const explainUnparsedBody = (defect: unknown): Option.Option<InvalidRequest> =>
  defect instanceof HttpServerError.RequestError && defect.reason === "Decode"
    ? Option.some(new InvalidRequest({ message: "The body is not valid JSON.", param: null }))
    : Option.none()

interface MemberAccess {
  /** Removes the fields that members must not see. Undefined for a CSV, whose handler chooses the columns. */
  readonly restrict: ((body: unknown) => Effect.Effect<unknown>) | undefined
  /** The query parameters that members may send. */
  readonly parameters: ReadonlySet<string>
  /** For parameters that name columns, such as `sort`: the values that members may send. */
  readonly values: Readonly<Record<string, ReadonlyArray<string>>>
}

/** Marks an endpoint that members of an organization can call. They can call only marked endpoints. */
class OpenToMembers extends Context.Tag("gateway/http/OpenToMembers")<OpenToMembers, MemberAccess>() {}

interface Query {
  readonly parameters?: ReadonlyArray<string>
  readonly values?: Readonly<Record<string, ReadonlyArray<string>>>
}

const accessOf = (restrict: MemberAccess["restrict"], { parameters = [], values = {} }: Query) =>
  Context.make(OpenToMembers, { restrict, parameters: new Set([...parameters, ...Object.keys(values)]), values })

/** Opens an endpoint to members. In its response they get only the fields of `answer`. */
export const exposeToMembers = <A, I>(answer: Schema.Schema<A, I>, query: Query = {}) => {
  const restrict = Schema.decodeUnknown(Schema.encodedSchema(answer))
  return accessOf((body) => Effect.orDie(restrict(body)), query)
}

export const exposeCsvToMembers = (query: Query) => accessOf(undefined, query)

export const isColumnVisible =
  (scope: OrganizationScope, memberColumns: ReadonlySet<string>) =>
  (column: string): boolean =>
    scope.org === undefined || memberColumns.has(column)

/** Refuses query parameters that members may not send, because filtering or sorting by a hidden field would reveal it. */
export const requireMemberParameters = ({ parameters, values }: MemberAccess) =>
  Effect.gen(function* () {
    // The router also accepts a query after `;`, which the URL's own query lacks.
    const searchParams = yield* HttpServerRequest.ParsedSearchParams
    for (const [name, sentValue] of Object.entries(searchParams)) {
      if (!parameters.has(name)) {
        return yield* new InvalidRequest({
          message: `\`${name}\` is not available to members of an organization.`,
          param: name
        })
      }
      const allowedItems = values[name]
      const sentItems = [sentValue].flat().flatMap((value) => value.split(","))
      if (allowedItems !== undefined && !sentItems.every((item) => allowedItems.includes(item))) {
        const message = `\`${name}\` must be one of ${allowedItems.join(", ")}.`
        return yield* new InvalidRequest({ message, param: name })
      }
    }
  })

const decodeJson = Schema.decodeUnknown(Schema.parseJson())

const restrictBody = ({ restrict }: MemberAccess, response: HttpServerResponse.HttpServerResponse) =>
  Effect.gen(function* () {
    const { body, status } = response
    if (status >= 400 || body._tag === "Empty") return response
    if (restrict === undefined && body._tag === "Stream" && body.contentType.startsWith("text/csv")) return response
    if (restrict === undefined || body._tag !== "Uint8Array") {
      return yield* Effect.dieMessage("the response for a member has no schema")
    }
    const visibleBody = yield* restrict(yield* Effect.orDie(decodeJson(new TextDecoder().decode(body.body))))
    return HttpServerResponse.setBody(response, HttpBody.unsafeJson(visibleBody))
  })

/** Removes all fields from the handler's response that members may not see. */
export const restrictAnswer = (access: MemberAccess) =>
  HttpApp.appendPreResponseHandler((_, response) => restrictBody(access, response))

export const memberAccessOf = ({ annotations }: { readonly annotations: Context.Context<never> }) =>
  Option.getOrUndefined(Context.getOption(annotations, OpenToMembers))
