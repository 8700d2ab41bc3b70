import { Data, Effect, Redacted, Schema } from "effect"
import { Role } from "../../domain/Operator.ts"
import { CurrentActor } from "./Actor.ts"
import { Audit } from "./Audit.ts"
import { type Operator, Operators } from "./Operators.ts"
import { UnixSeconds } from "./Record.ts"

export const OperatorRecord = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  role: Role,
  created_at: UnixSeconds,
  used_at: Schema.NullOr(UnixSeconds),
  revoked_at: Schema.NullOr(UnixSeconds)
}).annotations({ identifier: "Operator" })
export type OperatorRecord = typeof OperatorRecord.Type

export const operatorRecord = (operator: Operator): OperatorRecord => ({
  id: operator.id,
  name: operator.name,
  role: operator.role,
  created_at: operator.createdAt,
  used_at: operator.usedAt,
  revoked_at: operator.revokedAt
})

const common = { record: OperatorRecord, targetOf: ({ id }: OperatorRecord) => id }
const ofOperator = ({ operator }: { readonly operator: Operator }) => operatorRecord(operator)

/** Whoever has the command line can let themselves in again. */
export class LockOut extends Data.TaggedError("LockOut")<{ readonly message: string }> {}

/** After the `#` no server and no log sees it. */
export const consoleLink = (publicUrl: string, link: Redacted.Redacted) =>
  `${publicUrl}/console#link=${Redacted.value(link)}`

/** With a token and a link, once. */
export const createOperator = (given: { readonly name: string; readonly role: Role }) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { create, link } = yield* Operators
    const run = Effect.flatMap(create(given), (made) =>
      Effect.map(Effect.orDie(link(made.operator.id)), (secret) => ({ ...made, link: secret }))
    )
    return yield* change({ ...common, action: "operators.create", input: given, run, recordOf: ofOperator })
  })

export const linkOperator = (reference: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { find, link } = yield* Operators
    const operator = yield* find(reference)
    const run = Effect.map(link(operator.id), (secret) => ({ operator, link: secret }))
    const input = {}
    return yield* change({ ...common, action: "operators.link", input, target: operator.id, run, recordOf: ofOperator })
  })

const requireOtherOwner = Effect.fnUntraced(function* ({ id, name }: Operator) {
  const { operator } = yield* CurrentActor
  if (operator === undefined) return
  const { lockOwners } = yield* Operators
  const [first, ...others] = yield* lockOwners
  if (first === id && others.length === 0) {
    const message = `${name} is the last owner: only gateway operators revoke, on the gateway's own machine, can.`
    return yield* new LockOut({ message })
  }
  if (operator === id) return yield* new LockOut({ message: "You cannot revoke yourself: another owner can." })
})

export const revokeOperator = (reference: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { find, revoke } = yield* Operators
    const operator = yield* find(reference)
    const { id } = operator
    return yield* change({
      ...common,
      action: "operators.revoke",
      input: {},
      target: id,
      before: Effect.map(find(id), operatorRecord),
      run: Effect.zipRight(requireOtherOwner(operator), revoke(id)),
      recordOf: operatorRecord
    })
  })
