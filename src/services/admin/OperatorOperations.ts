import { Data, Effect, Redacted } from "effect"
import { CurrentActor } from "./Actor.ts"
import { auditResource, operation } from "./Operation.ts"
import { type NewOperator, Operator } from "./Operator.ts"
import { Operators } from "./Operators.ts"
import { Organizations } from "./Organizations.ts"

const operators = auditResource({
  name: "operators",
  record: Operator,
  find: (_, reference) => Effect.flatMap(Operators, ({ find }) => find(reference))
})

const recordOf = ({ operator }: { readonly operator: Operator }) => operator

/** Refuses operators of the admin API only: the command line may revoke anyone. */
export class LockOut extends Data.TaggedError("LockOut")<{ readonly message: string }> {}

export class MemberRoleRefused extends Data.TaggedError("MemberRoleRefused")<{}> {
  override get message() {
    return "A member of an organization has the role read or write: only operators of the gateway can be owners."
  }
}

/** After the `#` no server and no log sees it. */
export const consoleLink = (publicUrl: string, link: Redacted.Redacted) =>
  `${publicUrl}/console#link=${Redacted.value(link)}`

export const create = operation(
  "Let someone use the console and the admin API. Link and token are shown this once",
  (given: NewOperator) => {
    const run = Effect.gen(function* () {
      const { scope } = yield* CurrentActor
      const { create, link } = yield* Operators
      const { organization, ...operator } = given
      if (organization !== undefined && operator.role === "owner") return yield* new MemberRoleRefused()
      const { keep } = yield* Organizations
      const org = organization === undefined ? undefined : (yield* keep(scope, organization)).id
      const made = yield* create({ ...operator, org })
      return { ...made, link: yield* Effect.orDie(link(made.operator.id)) }
    })
    return operators.create("create", given, run, recordOf)
  }
)

export const link = operation("Make another link that opens the console once", (reference: string) =>
  operators.changeWith(
    "link",
    reference,
    {},
    Effect.fnUntraced(function* (_, id) {
      const { find, link } = yield* Operators
      return { operator: yield* find(id), link: yield* link(id) }
    }),
    recordOf
  )
)

const requireOtherOwner = Effect.fnUntraced(function* ({ id, name }: Operator) {
  const { operator } = yield* CurrentActor
  if (operator === undefined) return
  const [first, ...others] = yield* Effect.flatMap(Operators, ({ lockOwners }) => lockOwners)
  if (first === id && others.length === 0) {
    const message = `${name} is the last owner: only gateway operators revoke, on the gateway's own machine, can.`
    return yield* new LockOut({ message })
  }
  if (operator === id) return yield* new LockOut({ message: "You cannot revoke yourself: another owner can." })
})

export const revoke = operation("End an operator's token, links and sessions at once", (reference: string) =>
  operators.change(
    "revoke",
    reference,
    {},
    Effect.fnUntraced(function* (_, id) {
      const { find, revoke } = yield* Operators
      yield* requireOtherOwner(yield* find(id))
      return yield* revoke(id)
    })
  )
)
