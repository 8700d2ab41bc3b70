import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Layer, Redacted, Schema } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import { secretHash } from "../access/ApiKeys.ts"
import { UnixSeconds } from "../resources/Record.ts"
import { Ids } from "../runtime/Ids.ts"
import { recordsOf } from "../sql/Statement.ts"
import { Operator } from "./Operator.ts"

export class OperatorNameTaken extends Data.TaggedError("OperatorNameTaken")<{ readonly name: string }> {
  override get message() {
    return `An operator named ${this.name} exists already.`
  }
}

export class OperatorNameRefused extends Data.TaggedError("OperatorNameRefused")<{}> {
  override get message() {
    return "An operator's name has 1 to 100 printable characters and no space at its ends."
  }
}

export class OperatorNotFound extends Data.TaggedError("OperatorNotFound")<{ readonly reference: string }> {
  override get message() {
    return `There is no operator ${this.reference}.`
  }
}

interface Created extends Pick<Operator, "name" | "role"> {
  /** Whose member it is; undefined: of none. */
  readonly org?: OrgId | undefined
}

/** From other machines perhaps members alone are let in. */
export interface Admission {
  readonly membersOnly: boolean
}

export interface Session {
  readonly operator: Operator
  readonly expires_at: Date
}

interface OpenedSession extends Session {
  readonly secret: Redacted.Redacted
}

export const sessionHours = 12
export const linkHours = 24

const tokenPrefix = "ggo_"

/** Whether a text has the form of an operator's token, valid or not. */
export const isOperatorToken = (secret: Redacted.Redacted): boolean => Redacted.value(secret).startsWith(tokenPrefix)

const nameRule = /^(?!-|\s|cli:)[^\p{C}\p{Zl}\p{Zp}]{1,100}(?<!\s)$/u

const Expiring = Schema.Struct({ expires_at: UnixSeconds })

/** Who may look at and change the gateway; `reference` is an id or a name. */
export class Operators extends Context.Tag("gateway/Operators")<
  Operators,
  {
    /** The token is shown only here. */
    readonly create: (
      operator: Created
    ) => Effect.Effect<
      { readonly operator: Operator; readonly token: Redacted.Redacted },
      OperatorNameTaken | OperatorNameRefused
    >
    /** In order of creation, revoked ones included. */
    readonly list: Effect.Effect<ReadonlyArray<Operator>>
    readonly find: (reference: string) => Effect.Effect<Operator, OperatorNotFound>
    /** Ends its sessions, links and token at once. */
    readonly revoke: (reference: string) => Effect.Effect<Operator, OperatorNotFound>
    /** Ids of those that are not revoked, who stay so until the transaction ends. */
    readonly lockOwners: Effect.Effect<ReadonlyArray<string>>
    /** A secret that opens one session, within 24 hours. */
    readonly link: (reference: string) => Effect.Effect<Redacted.Redacted, OperatorNotFound>
    readonly byToken: (token: Redacted.Redacted) => Effect.Effect<Operator | undefined>
    readonly openByToken: (token: Redacted.Redacted, admission: Admission) => Effect.Effect<OpenedSession | undefined>
    /** One who is not admitted leaves the link as it was. */
    readonly openByLink: (link: Redacted.Redacted, admission: Admission) => Effect.Effect<OpenedSession | undefined>
    readonly session: (secret: Redacted.Redacted) => Effect.Effect<Session | undefined>
    readonly close: (secret: Redacted.Redacted) => Effect.Effect<void>
    readonly prune: Effect.Effect<void>
  }
>() {
  static readonly layer = Layer.effect(
    Operators,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const records = recordsOf(Operator)
      const columns = sql.literal(`operators.id, name, role, org_id AS org, operators.created_at, used_at, revoked_at,
        (SELECT organizations.name FROM organizations WHERE organizations.id = operators.org_id) AS org_name`)
      // A deleted organization has no members, whoever deleted it.
      const isLiving = sql.literal(`revoked_at IS NULL AND (org_id IS NULL
        OR EXISTS (SELECT FROM organizations WHERE organizations.id = operators.org_id AND deleted_at IS NULL))`)
      const hashOf = (secret: Redacted.Redacted) => sql`decode(${secretHash(Redacted.value(secret))}, 'hex')`

      const find = Effect.fn("Operators.find")(function* (reference: string) {
        const [found] = yield* records(sql`
          SELECT ${columns} FROM operators
          WHERE id = ${reference} OR (name = ${reference.normalize()} AND revoked_at IS NULL)`)
        return found ?? (yield* new OperatorNotFound({ reference }))
      })

      const findLiving = Effect.fnUntraced(function* (reference: string) {
        const found = yield* find(reference)
        return found.revoked_at === null ? found : yield* new OperatorNotFound({ reference })
      })

      const create = Effect.fn("Operators.create")(function* (wanted: Created) {
        const name = wanted.name.normalize()
        if (!nameRule.test(name)) return yield* new OperatorNameRefused()
        const token = Redacted.make(ids.secret(tokenPrefix))
        const [operator] = yield* records(sql`
          INSERT INTO operators (id, name, role, org_id, token_hash)
          VALUES (${ids.prefixed("opr")}, ${name}, ${wanted.role}, ${wanted.org ?? null}, ${hashOf(token)})
          ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING ${columns}`)
        return { operator: operator ?? (yield* new OperatorNameTaken({ name })), token }
      })

      const revoke = Effect.fn("Operators.revoke")(function* (reference: string) {
        const { id } = yield* find(reference)
        const [revoked] = yield* records(sql`
          WITH links AS (DELETE FROM operator_links WHERE operator_id = ${id}),
            sessions AS (DELETE FROM operator_sessions WHERE operator_id = ${id})
          UPDATE operators SET revoked_at = coalesce(revoked_at, now()) WHERE id = ${id} RETURNING ${columns}`)
        return revoked ?? (yield* new OperatorNotFound({ reference }))
      })

      // The audit's row of a change keeps the key of who makes it.
      const lockOwners = Effect.map(
        recordsOf(Operator.pick("id"))(
          sql`SELECT id FROM operators WHERE role = 'owner' AND revoked_at IS NULL ORDER BY id FOR NO KEY UPDATE`
        ),
        (owners) => owners.map(({ id }) => id)
      )

      const link = Effect.fn("Operators.link")(function* (reference: string) {
        const { id } = yield* findLiving(reference)
        const secret = Redacted.make(ids.secret(""))
        yield* Effect.orDie(sql`
          INSERT INTO operator_links (hash, operator_id, expires_at)
          VALUES (${hashOf(secret)}, ${id}, now() + ${linkHours} * interval '1 hour')`)
        return secret
      })

      const byToken = Effect.fn("Operators.byToken")(function* (token: Redacted.Redacted) {
        if (!Redacted.value(token).startsWith(tokenPrefix)) return undefined
        const [found] = yield* records(sql`
          SELECT ${columns} FROM operators WHERE token_hash = ${hashOf(token)} AND ${isLiving}`)
        if (found !== undefined) {
          yield* Effect.orDie(sql`
            UPDATE operators SET used_at = now()
            WHERE id = ${found.id} AND coalesce(used_at, '-infinity') < now() - interval '1 minute'`)
        }
        return found
      })

      const open = Effect.fnUntraced(function* (from: Effect.Effect<Operator | undefined>) {
        const operator = yield* from
        if (operator === undefined) return undefined
        const secret = Redacted.make(ids.secret(""))
        const [opened] = yield* recordsOf(Expiring)(sql`
          INSERT INTO operator_sessions (hash, operator_id, expires_at)
          SELECT ${hashOf(secret)}, id, now() + ${sessionHours} * interval '1 hour' FROM operators
          WHERE id = ${operator.id} AND ${isLiving} RETURNING expires_at`)
        return opened && { operator, secret, expires_at: opened.expires_at }
      })

      const takeLink = Effect.fnUntraced(function* (secret: Redacted.Redacted, { membersOnly }: Admission) {
        const [operator] = yield* records(sql`
          WITH taken AS (
            DELETE FROM operator_links WHERE hash = ${hashOf(secret)} AND (NOT ${membersOnly}::boolean
              OR operator_id IN (SELECT id FROM operators WHERE org_id IS NOT NULL))
            RETURNING operator_id, expires_at > now() AS is_valid
          )
          SELECT ${columns} FROM operators JOIN taken ON operator_id = id WHERE is_valid AND ${isLiving}`)
        return operator
      })

      const session = Effect.fn("Operators.session")(function* (secret: Redacted.Redacted) {
        const [found] = yield* recordsOf(Schema.Struct({ ...Operator.fields, ...Expiring.fields }))(sql`
          SELECT ${columns}, operator_sessions.expires_at
          FROM operator_sessions JOIN operators ON operators.id = operator_id
          WHERE hash = ${hashOf(secret)} AND expires_at > now() AND ${isLiving}`)
        return found && { operator: found, expires_at: found.expires_at }
      })

      return Operators.of({
        create,
        find,
        revoke,
        lockOwners,
        link,
        byToken,
        session,
        list: Effect.withSpan(records(sql`SELECT ${columns} FROM operators ORDER BY created_at, id`), "Operators.list"),
        openByToken: (token, { membersOnly }) =>
          open(Effect.map(byToken(token), (found) => (membersOnly && found?.org === null ? undefined : found))),
        openByLink: (secret, admission) => open(takeLink(secret, admission)),
        close: (secret) =>
          Effect.asVoid(Effect.orDie(sql`DELETE FROM operator_sessions WHERE hash = ${hashOf(secret)}`)),
        prune: Effect.orDie(
          Effect.zipRight(
            sql`DELETE FROM operator_sessions WHERE expires_at < now()`,
            sql`DELETE FROM operator_links WHERE expires_at < now()`
          )
        ).pipe(Effect.asVoid)
      })
    })
  )
}
