import { HttpApp, HttpBody, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Context, Effect, Option, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"

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
