import { HttpApiBuilder } from "@effect/platform"
import { Effect, identity } from "effect"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import { Audit } from "../../../services/admin/Audit.ts"
import type { AuditRow } from "../../../services/admin/AuditRow.ts"
import { AdminApi } from "../AdminApi.ts"
import { filtersOf } from "../Filters.ts"
import { cutPage, defaultListed, numberedAfter } from "../Page.ts"

export const AuditHandlers = HttpApiBuilder.group(
  AdminApi,
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
