import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Audit } from "../../../services/admin/Audit.ts"
import { auditRecord } from "../../../services/admin/AuditRecord.ts"
import { AdminApi } from "../AdminApi.ts"
import { organizationOf, spanOf } from "../Filters.ts"
import { cutPage, defaultListed, numberedAfter } from "../Page.ts"

export const AuditHandlers = HttpApiBuilder.group(
  AdminApi,
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* Audit
    return handlers.handle("list", ({ urlParams: { action, actor, limit = defaultListed, target, ...given } }) =>
      Effect.gen(function* () {
        const org = yield* organizationOf(given.organization)
        const after = yield* numberedAfter(given.after)
        const span = yield* spanOf(given)
        const rows = yield* audit.list({ action, actor, target, org, after, ...span, limit: limit + 1 })
        return cutPage(rows, limit, auditRecord, ({ id }) => String(id))
      })
    )
  })
)
