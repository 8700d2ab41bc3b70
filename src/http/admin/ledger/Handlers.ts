import { HttpApiBuilder } from "@effect/platform"
import { Effect, Schema } from "effect"
import { listedEntryRecord, openHoldRecord } from "../../../services/admin/EntryRecord.ts"
import { LedgerAdmin } from "../../../services/ledger/LedgerAdmin.ts"
import { AdminApi } from "../AdminApi.ts"
import { organizationOf, spanOf } from "../Filters.ts"
import { cutPage, defaultListed, numberedAfter, wrongCursor } from "../Page.ts"

const isUuid = Schema.is(Schema.UUID)

export const LedgerHandlers = HttpApiBuilder.group(
  AdminApi,
  "ledger",
  Effect.fnUntraced(function* (handlers) {
    const ledger = yield* LedgerAdmin
    return handlers
      .handle("list", ({ urlParams: { after, hold, kind, limit = defaultListed, organization, ...span } }) =>
        Effect.gen(function* () {
          yield* numberedAfter(after)
          const org = yield* organizationOf(organization)
          const rows = yield* ledger.page({ ...(yield* spanOf(span)), after, hold, kind, limit: limit + 1, org })
          return cutPage(rows, limit, listedEntryRecord, ({ id }) => id)
        })
      )
      .handle("holds", ({ urlParams: { after, limit = defaultListed, organization } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !isUuid(after)) return yield* wrongCursor
          const org = yield* organizationOf(organization)
          const rows = yield* ledger.openHolds({ after, limit: limit + 1, org })
          return cutPage(rows, limit, openHoldRecord, ({ id }) => id)
        })
      )
  })
)
