import { Data, Effect, Redacted } from "effect"
import { CurrentActor } from "./Actor.ts"
import { auditResource, operation } from "./AdminOperation.ts"
import { type NewOperator, Operator, Operators } from "./Operators.ts"
import { Organizations } from "./Organizations.ts"

const operators = auditResource({
  name: "operators",
  record: Operator,
  find: (scope, reference) => Effect.flatMap(Operators, ({ find }) => find(scope, reference))
})

const recordOf = ({ operator }: { readonly operator: Operator }) => operator

/** Applies only to operators of the admin API. The command line may change and revoke anyone. */
export class LockOut extends Data.TaggedError("LockOut")<{ readonly message: string }> {}

/** Hides who has the name, because names are unique across organizations. */
class NameUnavailable extends Data.TaggedError("NameUnavailable")<{ readonly name: string }> {
  override get message() {
    return `The name ${this.name} is not available. Choose another one.`
  }
}

export class MemberRoleRefused extends Data.TaggedError("MemberRoleRefused")<{}> {
  override get message() {
    return "A member of an organization has the role read or write. Only operators of the gateway can be owners."
  }
}

export const consoleUrl = (publicUrl: string) => `${publicUrl}/console`

/** The secret is in the fragment, which browsers do not send, so no server logs it. */
export const consoleLink = (publicUrl: string, link: Redacted.Redacted) =>
  `${consoleUrl(publicUrl)}#link=${Redacted.value(link)}`

/**
 * Fails if the actor was revoked or lost its role after the request began: two managers may revoke or demote each other, and
 * an invitation by a revoked one would restore its access. Returns the managers' ids, whose rows stay locked. Returns none
 * for the command line.
 */
const requireManager = Effect.gen(function* () {
  const { name, operator, scope } = yield* CurrentActor
  if (operator === undefined) return []
  const managers = yield* Effect.flatMap(Operators, ({ lockManagers }) => lockManagers(scope))
  if (!managers.includes(operator)) return yield* new LockOut({ message: `${name} can no longer manage operators.` })
  return managers
})

export const create = operation(
  "Create an operator of the console and the admin API. Its link and token are shown only once",
  (newOperator: NewOperator) => {
    const run = Effect.gen(function* () {
      const { scope } = yield* CurrentActor
      const { create, link } = yield* Operators
      // A member invites only into its own organization. Otherwise it could create operators of the gateway.
      const { organization = scope.org, ...operator } = newOperator
      if (organization !== undefined && operator.role === "owner") return yield* new MemberRoleRefused()
      yield* requireManager
      const { findLocked } = yield* Organizations
      const org = organization === undefined ? undefined : (yield* findLocked(scope, organization)).id
      const created = yield* create({ ...operator, org }).pipe(
        Effect.catchTag("OperatorNameTaken", (taken) =>
          Effect.fail(scope.org === undefined ? taken : new NameUnavailable({ name: taken.name }))
        )
      )
      return { ...created, link: yield* Effect.orDie(link(scope, created.operator.id)) }
    })
    return operators.create("create", newOperator, run, recordOf)
  }
)

export const link = operation("Create a new sign-in link, which works once", (reference: string) =>
  operators.changeWith(
    "link",
    reference,
    {},
    Effect.fnUntraced(function* (scope, id) {
      const { find, link } = yield* Operators
      yield* requireManager
      return { operator: yield* find(scope, id), link: yield* link(scope, id) }
    }),
    recordOf
  )
)

interface LockingChange {
  readonly command: string
  /** The change of another operator, and of oneself, in words that follow "to" or "cannot". */
  readonly other: string
  readonly own: string
}

/** Fails if the actor would lock itself out of managing operators, or all owners. */
const requireOtherManager = Effect.fnUntraced(function* (
  { id, name }: Operator,
  { command, other, own }: LockingChange
) {
  const { operator, scope } = yield* CurrentActor
  const [first, ...others] = yield* requireManager
  const isMember = scope.org !== undefined
  if (first === id && others.length === 0 && !isMember) {
    const message = `${name} is the last owner. To ${other}, run gateway operators ${command} on the gateway's machine.`
    return yield* new LockOut({ message })
  }
  if (operator === id) {
    const another = isMember ? "another member with the role write" : "another owner"
    return yield* new LockOut({ message: `You cannot ${own}. Ask ${another}.` })
  }
})

export const update = operation("Change an operator's role", (reference: string, changes: Pick<Operator, "role">) =>
  operators.change(
    "update",
    reference,
    changes,
    Effect.fnUntraced(function* (scope, id) {
      const { find, update } = yield* Operators
      const operator = yield* find(scope, id)
      if (operator.org !== null && changes.role === "owner") return yield* new MemberRoleRefused()
      yield* requireOtherManager(operator, { command: "update", other: "change its role", own: "change your own role" })
      return yield* update(scope, id, changes)
    })
  )
)

export const revoke = operation("Revoke an operator's token, links and sessions immediately", (reference: string) =>
  operators.change(
    "revoke",
    reference,
    {},
    Effect.fnUntraced(function* (scope, id) {
      const { find, revoke } = yield* Operators
      yield* requireOtherManager(yield* find(scope, id), {
        command: "revoke",
        other: "revoke it",
        own: "revoke yourself"
      })
      return yield* revoke(scope, id)
    })
  )
)
