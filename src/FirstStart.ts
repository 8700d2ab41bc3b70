import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import { NanoUsd } from "./domain/Money.ts"
import { ApiKeys } from "./services/access/ApiKeys.ts"
import { Organizations } from "./services/access/Organizations.ts"

export const demoOrganization = "demo"
const demoCredits = NanoUsd(100_000_000_000n)

/** Returns the new key's secret, which nothing shows again; none where an organization exists. */
export const firstStart = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const known = yield* organizations.list
  if (known.length > 0) return Option.none()
  const make = Effect.gen(function* () {
    const { id } = yield* organizations.create({ name: demoOrganization, credits: demoCredits })
    const { secret } = yield* keys.create({ org: id, name: demoOrganization })
    return Option.some(secret)
  })
  // Another first start on the same directory may have been quicker.
  return yield* sql.withTransaction(make).pipe(Effect.catchTag("NameTaken", () => Effect.succeedNone))
})
