import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Schema } from "effect"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Audit, AuditRow } from "../../services/admin/Audit.ts"
import { parameter } from "../schema/Query.ts"
import { adminApiOf, ReadAccess, ReadErrors } from "./Access.ts"
import { filtersOf, organizationParameter, spanParameters } from "./Filters.ts"
import { cutPage, defaultListed, numberedAfter, pageOf, pageParameters } from "./Page.ts"

const filter = (name: string, description: string) => parameter(name, Schema.String, "must be a text", description)

const list = HttpApiEndpoint.get("list", "/audit")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      actor: filter("actor", "An operator's name, or `cli:` and who ran the command."),
      action: filter("action", "One action such as `keys.revoke`, or all of a resource such as `keys`."),
      target: filter("target", "The id of what was changed."),
      ...organizationParameter,
      ...spanParameters
    })
  )
  .addSuccess(pageOf(AuditRow, "Audit"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "What operators changed, newest first")

export const AuditGroup = HttpApiGroup.make("audit").add(list).addError(ReadErrors)

export const AuditHandlers = HttpApiBuilder.group(
  adminApiOf(AuditGroup),
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* Audit
    return handlers.handle("list", ({ urlParams: { limit = defaultListed, ...given } }) =>
      Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const after = yield* numberedAfter(scope, given.after)
        const rows = yield* audit.list(scope, { ...(yield* filtersOf(given)), after, limit: limit + 1 })
        return cutPage(rows, limit, identity<AuditRow>, ({ id }) => String(id))
      })
    )
  })
)
