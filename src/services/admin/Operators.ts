import { SqlClient } from "@effect/sql"
import { Cache, Clock, Context, Data, Effect, Layer, Redacted, Schema } from "effect"
import { SignInLimited } from "../../domain/Failure.ts"
import { OrgId, Role } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { secretHash } from "../access/ApiKeys.ts"
import { TextOrNull, TimeOrNull, UnixSeconds } from "../resources/ResourceRecord.ts"
import { Ids } from "../runtime/Ids.ts"
import { equals, lockName, recordsOf } from "../sql/SqlStatement.ts"

export const Operator = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  role: Role,
  org: Schema.NullOr(OrgId).annotations({
    description: "The organization of a member, who has access only to it. Null for operators of the gateway."
  }),
  org_name: TextOrNull,
  created_at: UnixSeconds,
  used_at: TimeOrNull.annotations({
    description:
      "The last request by token or session, accurate to about a minute. Null if the operator never signed in."
  }),
  revoked_at: TimeOrNull
}).annotations({ identifier: "Operator" })
export type Operator = typeof Operator.Type

export type NewOperator = Pick<Operator, "name" | "role"> & {
  /** For a member, the id or name of its organization. */
  readonly organization?: string | undefined
}

export const scopeOf = ({ org }: Pick<Operator, "org">): OrganizationScope =>
  org === null ? OrganizationScope.all : OrganizationScope.only(org)

class OperatorNameTaken extends Data.TaggedError("OperatorNameTaken")<{ readonly name: string }> {
  override get message() {
    return `An operator named ${this.name} already exists.`
  }
}

class OperatorNameRefused extends Data.TaggedError("OperatorNameRefused")<{}> {
  override get message() {
    return "An operator's name has 1 to 100 printable characters, no space at its ends, and starts neither with cli: nor with a dash."
  }
}

/** Per organization. Members that were revoked within a day count, so that repeated invitations cannot fill the table. */
const maxMembers = 100

class TooManyMembers extends Data.TaggedError("TooManyMembers")<{}> {
  override get message() {
    return `An organization may have ${maxMembers} members, including those revoked within the last day.`
  }
}

class OperatorNotFound extends Data.TaggedError("OperatorNotFound")<{ readonly reference: string }> {
  override get message() {
    return `There is no operator ${this.reference}.`
  }
}

interface OperatorFields extends Pick<Operator, "name" | "role"> {
  /** A member's organization. Undefined for an operator of the whole gateway. */
  readonly org?: OrgId | undefined
}

/** Who may sign in. Depending on the settings, clients on other machines may sign in only as members. */
interface Admission {
  readonly isForMembersOnly: boolean
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

/** Returns whether a text looks like an operator's token. The token may still be invalid. */
export const isOperatorToken = (secret: Redacted.Redacted): boolean => Redacted.value(secret).startsWith(tokenPrefix)

/** Members choose names too, so no name may look like the actor of a command in the audit log. */
const nameForm = /^(?!-|\s|cli:)[^\p{C}\p{Zl}\p{Zp}]{1,100}(?<!\s)$/iu

const Expiry = Schema.Struct({ expires_at: UnixSeconds })

/** Stores operators and their tokens, sign-in links and sessions. A `reference` is an id or a name. */
export class Operators extends Context.Tag("gateway/Operators")<
  Operators,
  {
    /** Also returns the token, of which only a hash is stored. */
    readonly create: (
      operator: OperatorFields
    ) => Effect.Effect<
      { readonly operator: Operator; readonly token: Redacted.Redacted },
      OperatorNameTaken | OperatorNameRefused | TooManyMembers
    >
    /** Ordered by creation. Includes revoked operators. With an organization, returns only its members. */
    readonly list: (scope: OrganizationScope, org?: OrgId) => Effect.Effect<ReadonlyArray<Operator>>
    /** If an operator's id is another one's name, returns the operator with the id. */
    readonly find: (scope: OrganizationScope, reference: string) => Effect.Effect<Operator, OperatorNotFound>
    /** Changes the role of an operator that is not revoked. Sessions and tokens have the new role immediately. */
    readonly update: (
      scope: OrganizationScope,
      reference: string,
      changes: Pick<Operator, "role">
    ) => Effect.Effect<Operator, OperatorNotFound>
    /** Invalidates the operator's token, links and sessions immediately. */
    readonly revoke: (scope: OrganizationScope, reference: string) => Effect.Effect<Operator, OperatorNotFound>
    /**
     * Returns the ids of those who may manage operators in the scope: active owners, or the active members of the organization
     * with the role write. Locks their rows until the transaction ends, so none can be revoked or lose its role meanwhile.
     */
    readonly lockManagers: (scope: OrganizationScope) => Effect.Effect<ReadonlyArray<string>>
    /** Returns the secret of a new sign-in link. It can be used once, within 24 hours. */
    readonly link: (scope: OrganizationScope, reference: string) => Effect.Effect<Redacted.Redacted, OperatorNotFound>
    readonly byToken: (token: Redacted.Redacted) => Effect.Effect<Operator | undefined>
    readonly openByToken: (token: Redacted.Redacted, admission: Admission) => Effect.Effect<OpenedSession | undefined>
    /** Uses up the link and opens a session. If the operator may not sign in, the link stays valid. */
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
      // The members of a deleted organization lose their access.
      const isActive = sql.literal(`revoked_at IS NULL AND (org_id IS NULL
        OR EXISTS (SELECT FROM organizations WHERE organizations.id = operators.org_id AND deleted_at IS NULL))`)
      const hashOf = (secret: Redacted.Redacted) => sql`decode(${secretHash(Redacted.value(secret))}, 'hex')`

      const inScope = (scope: OrganizationScope, org?: OrgId) => sql.and(equals(sql, { org_id: scope.narrow(org) }))

      const find = Effect.fn("Operators.find")(function* (scope: OrganizationScope, reference: string) {
        const [operator] = yield* records(sql`
          SELECT ${columns} FROM operators
          WHERE (id = ${reference} OR (name = ${reference.normalize()} AND revoked_at IS NULL)) AND ${inScope(scope)}
          ORDER BY id = ${reference} DESC LIMIT 1`)
        return operator ?? (yield* new OperatorNotFound({ reference }))
      })

      const findActive = Effect.fnUntraced(function* (scope: OrganizationScope, reference: string) {
        const operator = yield* find(scope, reference)
        return operator.revoked_at === null ? operator : yield* new OperatorNotFound({ reference })
      })

      const requireRoom = Effect.fnUntraced(
        function* (org: OrgId) {
          yield* lockName(sql, `members ${org}`)
          const counted = yield* sql`
            SELECT FROM operators
            WHERE org_id = ${org} AND coalesce(revoked_at, 'infinity') > now() - interval '1 day' LIMIT ${maxMembers}`
          if (counted.length === maxMembers) return yield* new TooManyMembers()
        },
        Effect.catchTag("SqlError", Effect.die)
      )

      const create = Effect.fn("Operators.create")(function* (fields: OperatorFields) {
        const name = fields.name.normalize()
        if (!nameForm.test(name)) return yield* new OperatorNameRefused()
        if (fields.org !== undefined) yield* requireRoom(fields.org)
        const token = Redacted.make(ids.secret(tokenPrefix))
        const [operator] = yield* records(sql`
          INSERT INTO operators (id, name, role, org_id, token_hash)
          VALUES (${ids.prefixed("opr")}, ${name}, ${fields.role}, ${fields.org ?? null}, ${hashOf(token)})
          ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING ${columns}`)
        return { operator: operator ?? (yield* new OperatorNameTaken({ name })), token }
      })

      const update = Effect.fn("Operators.update")(function* (
        scope: OrganizationScope,
        reference: string,
        { role }: Pick<Operator, "role">
      ) {
        const { id } = yield* findActive(scope, reference)
        const [updated] = yield* records(sql`
          UPDATE operators SET role = ${role} WHERE id = ${id} AND revoked_at IS NULL RETURNING ${columns}`)
        return updated ?? (yield* new OperatorNotFound({ reference }))
      })

      const revoke = Effect.fn("Operators.revoke")(function* (scope: OrganizationScope, reference: string) {
        const { id } = yield* find(scope, reference)
        const [revoked] = yield* records(sql`
          WITH links AS (DELETE FROM operator_links WHERE operator_id = ${id}),
            sessions AS (DELETE FROM operator_sessions WHERE operator_id = ${id})
          UPDATE operators SET revoked_at = coalesce(revoked_at, now()) WHERE id = ${id} RETURNING ${columns}`)
        return revoked ?? (yield* new OperatorNotFound({ reference }))
      })

      // A weaker lock than FOR UPDATE, because the audit row of the change references the operator's row.
      const lockManagers = Effect.fn("Operators.lockManagers")(function* (scope: OrganizationScope) {
        const isManager = scope.org === undefined ? sql`role = 'owner'` : sql`org_id = ${scope.org} AND role = 'write'`
        const managers = yield* recordsOf(Operator.pick("id"))(
          sql`SELECT id FROM operators WHERE ${isManager} AND revoked_at IS NULL ORDER BY id FOR NO KEY UPDATE`
        )
        return managers.map(({ id }) => id)
      })

      const link = Effect.fn("Operators.link")(function* (scope: OrganizationScope, reference: string) {
        const { id } = yield* findActive(scope, reference)
        const secret = Redacted.make(ids.secret(""))
        yield* Effect.orDie(sql`
          INSERT INTO operator_links (hash, operator_id, expires_at)
          VALUES (${hashOf(secret)}, ${id}, now() + ${linkHours} * interval '1 hour')`)
        return secret
      })

      const markUsed = (operator: Operator | undefined) =>
        operator === undefined
          ? Effect.void
          : Effect.orDie(sql`
              UPDATE operators SET used_at = now()
              WHERE id = ${operator.id} AND coalesce(used_at, '-infinity') < now() - interval '1 minute'`)

      const byToken = Effect.fn("Operators.byToken")(function* (token: Redacted.Redacted) {
        if (!Redacted.value(token).startsWith(tokenPrefix)) return undefined
        const [operator] = yield* records(sql`
          SELECT ${columns} FROM operators WHERE token_hash = ${hashOf(token)} AND ${isActive}`)
        yield* markUsed(operator)
        return operator
      })

      const openSession = Effect.fnUntraced(function* (find: Effect.Effect<Operator | undefined>) {
        const operator = yield* find
        if (operator === undefined) return undefined
        const secret = Redacted.make(ids.secret(""))
        const [opened] = yield* recordsOf(Expiry)(sql`
          INSERT INTO operator_sessions (hash, operator_id, expires_at)
          SELECT ${hashOf(secret)}, id, now() + ${sessionHours} * interval '1 hour' FROM operators
          WHERE id = ${operator.id} AND ${isActive} RETURNING expires_at`)
        return opened && { operator, secret, expires_at: opened.expires_at }
      })

      const redeemLink = Effect.fnUntraced(function* (secret: Redacted.Redacted, { isForMembersOnly }: Admission) {
        const [operator] = yield* records(sql`
          WITH taken AS (
            DELETE FROM operator_links WHERE hash = ${hashOf(secret)} AND (NOT ${isForMembersOnly}::boolean
              OR operator_id IN (SELECT id FROM operators WHERE org_id IS NOT NULL))
            RETURNING operator_id, expires_at > now() AS is_valid
          )
          SELECT ${columns} FROM operators JOIN taken ON operator_id = id WHERE is_valid AND ${isActive}`)
        return operator
      })

      const session = Effect.fn("Operators.session")(function* (secret: Redacted.Redacted) {
        const [session] = yield* recordsOf(Schema.Struct({ ...Operator.fields, ...Expiry.fields }))(sql`
          SELECT ${columns}, operator_sessions.expires_at
          FROM operator_sessions JOIN operators ON operators.id = operator_id
          WHERE hash = ${hashOf(secret)} AND expires_at > now() AND ${isActive}`)
        yield* markUsed(session)
        return session && { operator: session, expires_at: session.expires_at }
      })

      return Operators.of({
        create,
        find,
        update,
        revoke,
        lockManagers,
        link,
        byToken,
        session,
        list: Effect.fn("Operators.list")((scope: OrganizationScope, org?: OrgId) =>
          records(sql`SELECT ${columns} FROM operators WHERE ${inScope(scope, org)} ORDER BY created_at, id`)
        ),
        openByToken: (token, { isForMembersOnly }) =>
          openSession(
            Effect.map(byToken(token), (operator) =>
              isForMembersOnly && operator?.org === null ? undefined : operator
            )
          ),
        openByLink: (secret, admission) => openSession(Effect.tap(redeemLink(secret, admission), markUsed)),
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

const windowMillis = 60_000
const maxFailures = 10
const maxAddresses = 10_000

/**
 * Allows ten failed sign-ins per address per minute, in each process. Valid credentials always work, because users may share
 * an address.
 */
export class SignInLimiter extends Context.Tag("gateway/SignInLimiter")<
  SignInLimiter,
  {
    /** Counts a failed sign-in. Fails if the limit was already reached. */
    readonly fail: (address: string) => Effect.Effect<void, SignInLimited>
  }
>() {
  static readonly layer = Layer.effect(
    SignInLimiter,
    Effect.gen(function* () {
      const windows = yield* Cache.make({
        capacity: maxAddresses,
        timeToLive: windowMillis,
        lookup: (_address: string) => Effect.map(Clock.currentTimeMillis, (startedAt) => ({ startedAt, failures: 0 }))
      })
      return SignInLimiter.of({
        fail: Effect.fnUntraced(function* (address) {
          const window = yield* windows.get(address)
          if (window.failures >= maxFailures) {
            const leftMillis = window.startedAt + windowMillis - (yield* Clock.currentTimeMillis)
            return yield* new SignInLimited({ retryAfterSeconds: Math.max(1, Math.ceil(leftMillis / 1000)) })
          }
          window.failures += 1
        })
      })
    })
  )
}
