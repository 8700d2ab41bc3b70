import { SqlClient } from "@effect/sql"
import { Effect, Layer, Option, type Redacted, Schema } from "effect"
import { NanoUsd } from "./domain/Money.ts"
import { ApiKeys } from "./services/access/ApiKeys.ts"
import { CurrentActor } from "./services/admin/Actor.ts"
import { Audit } from "./services/admin/Audit.ts"
import * as OperatorOperations from "./services/admin/OperatorOperations.ts"
import { Operators } from "./services/admin/Operators.ts"
import { Organizations } from "./services/admin/Organizations.ts"
import { LedgerAdmin } from "./services/ledger/LedgerAdmin.ts"
import { rowsOf } from "./services/sql/Statement.ts"

export const demoOrganization = "demo"
export const firstOperator = "admin"
const demoCredits = NanoUsd(100_000_000_000n)

/** Secrets that nothing shows again. */
export interface FirstSecrets {
  readonly key: Redacted.Redacted
  /** None where operators were made before. */
  readonly link: Option.Option<Redacted.Redacted>
}

/** Names for the commands that a start prints: the oldest organization and operator. */
export interface Examples {
  readonly organization: Option.Option<string>
  /** Not a member. */
  readonly operator: Option.Option<string>
}

const Named = Schema.Struct({ organization: Schema.NullOr(Schema.String), operator: Schema.NullOr(Schema.String) })

const noExamples: Examples = { organization: Option.none(), operator: Option.none() }

/** Returns no names if the database is away, because the start must not fail for them. */
export const findExamples = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* rowsOf(Named)(sql`
    SELECT (SELECT name FROM organizations WHERE deleted_at IS NULL ORDER BY created_at LIMIT 1) AS organization,
      (SELECT name FROM operators WHERE revoked_at IS NULL AND org_id IS NULL ORDER BY created_at LIMIT 1) AS operator`)
  if (found === undefined) return noExamples
  return { organization: Option.fromNullable(found.organization), operator: Option.fromNullable(found.operator) }
}).pipe(Effect.catchAllDefect(() => Effect.succeed(noExamples)))

const services = Layer.mergeAll(
  ApiKeys.layer,
  Audit.layer,
  CurrentActor.commandLine(),
  Operators.layer,
  Layer.provide(Organizations.layer, LedgerAdmin.layer)
)

/** None where an organization exists. */
export const firstStart = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const operators = yield* Operators
  const known = yield* organizations.list
  if (known.length > 0) return Option.none()
  const makeOperator = Effect.gen(function* () {
    if ((yield* operators.list).length > 0) return Option.none()
    const { value } = yield* Effect.orDie(OperatorOperations.create.run({ name: firstOperator, role: "owner" }))
    return Option.map(Option.fromNullable(value), ({ link }) => link)
  })
  const make = Effect.gen(function* () {
    const { id } = yield* organizations.create({ name: demoOrganization, credits: demoCredits })
    const { secret } = yield* Effect.orDie(keys.create({ org: id, name: demoOrganization }))
    return Option.some<FirstSecrets>({ key: secret, link: yield* makeOperator })
  })
  // Another first start on the same directory may have been quicker.
  return yield* sql.withTransaction(make).pipe(Effect.catchTag("NameTaken", () => Effect.succeedNone))
}).pipe(Effect.provide(services))
