import { HttpApp, HttpBody, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Context, Effect, Option, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"

interface MemberAccess {
  /** What of an answer a member sees; undefined: the answer is a CSV, of which it gets `columns`. */
  readonly restrict: ((body: unknown) => Effect.Effect<unknown>) | undefined
  /** The query parameters it may send, and of those that name columns the values. */
  readonly parameters: ReadonlySet<string>
  readonly values: Readonly<Record<string, ReadonlyArray<string>>>
}

/** An endpoint that answers members of an organization: for them there are no others. */
class OpenToMembers extends Context.Tag("gateway/http/OpenToMembers")<OpenToMembers, MemberAccess>() {}

interface Query {
  readonly parameters?: ReadonlyArray<string>
  readonly values?: Readonly<Record<string, ReadonlyArray<string>>>
}

const accessOf = (restrict: MemberAccess["restrict"], { parameters = [], values = {} }: Query) =>
  Context.make(OpenToMembers, { restrict, parameters: new Set([...parameters, ...Object.keys(values)]), values })

/** Annotates an endpoint: `answer` lists what members see, whatever else it answers is left out for them. */
export const membersSee = <A, I>(answer: Schema.Schema<A, I>, query: Query = {}) => {
  const restrict = Schema.decodeUnknown(Schema.encodedSchema(answer))
  return accessOf((body) => Effect.orDie(restrict(body)), query)
}

export const membersDownload = (query: Query) => accessOf(undefined, query)

/** The columns of a CSV that its reader gets: `ofMembers` within an organization. */
export const isColumnShown =
  (scope: OrganizationScope, ofMembers: ReadonlySet<string>) =>
  (column: string): boolean =>
    scope.org === undefined || ofMembers.has(column)

/** Filtering or sorting by what members do not see would tell them of it. */
export const requireOwnParameters = ({ parameters, values }: MemberAccess) =>
  Effect.gen(function* () {
    // What the handler is given: its router takes a query after `;` too.
    const sent = yield* HttpServerRequest.ParsedSearchParams
    for (const [name, given] of Object.entries(sent)) {
      if (!parameters.has(name)) {
        return yield* new InvalidRequest({
          message: `\`${name}\` is not for members of an organization.`,
          param: name
        })
      }
      const allowed = values[name]
      const asked = [given].flat().flatMap((value) => value.split(","))
      if (allowed !== undefined && !asked.every((one) => allowed.includes(one))) {
        const message = `\`${name}\` must be of ${allowed.join(", ")}.`
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
      return yield* Effect.dieMessage("an answer to a member has no schema")
    }
    const seen = yield* restrict(yield* Effect.orDie(decodeJson(new TextDecoder().decode(body.body))))
    return HttpServerResponse.setBody(response, HttpBody.unsafeJson(seen))
  })

/** Whatever the handler answers, a member gets of it what its schema has. */
export const restrictAnswer = (access: MemberAccess) =>
  HttpApp.appendPreResponseHandler((_, response) => restrictBody(access, response))

export const memberAccessOf = ({ annotations }: { readonly annotations: Context.Context<never> }) =>
  Option.getOrUndefined(Context.getOption(annotations, OpenToMembers))
