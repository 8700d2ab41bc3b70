import { Data, Effect, Redacted, Schema } from "effect"
import { Role } from "../../domain/Operator.ts"
import { TimeOrNull, UnixSeconds } from "../resources/Record.ts"
import { CurrentActor } from "./Actor.ts"
import { Audit } from "./Audit.ts"
import { type Operator, type OperatorNotFound, Operators } from "./Operators.ts"

export const OperatorRecord = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  role: Role,
  created_at: UnixSeconds,
  used_at: TimeOrNull,
  revoked_at: TimeOrNull
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

/** Refuses operators of the admin API only: the command line may revoke anyone. */
export class LockOut extends Data.TaggedError("LockOut")<{ readonly message: string }> {}

/** After the `#` no server and no log sees it. */
export const consoleLink = (publicUrl: string, link: Redacted.Redacted) =>
  `${publicUrl}/console#link=${Redacted.value(link)}`

/** With a token and a link, once. */
export const createOperator = (given: { readonly name: string; readonly role: Role }) =>
  Effect.gen(function* () {
    const audit = yield* Audit
    const { create, link } = yield* Operators
    const run = Effect.flatMap(create(given), (made) =>
      Effect.map(Effect.orDie(link(made.operator.id)), (secret) => ({ ...made, link: secret }))
    )
    return yield* audit.create({ ...common, action: "operators.create", input: given, run, recordOf: ofOperator })
  })

const changeOne = <A, E>(
  action: string,
  reference: string,
  recordOf: (value: A) => OperatorRecord,
  run: (operators: typeof Operators.Service, operator: Operator) => Effect.Effect<A, E | OperatorNotFound, CurrentActor>
) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const operators = yield* Operators
    return yield* change({
      ...common,
      action: `operators.${action}`,
      input: {},
      target: reference,
      find: (reference) => Effect.map(operators.find(reference), operatorRecord),
      run: (id) => Effect.flatMap(operators.find(id), (operator) => run(operators, operator)),
      recordOf
    })
  })

export const linkOperator = (reference: string) =>
  changeOne("link", reference, ofOperator, ({ link }, operator) =>
    Effect.map(link(operator.id), (secret) => ({ operator, link: secret }))
  )

const requireOtherOwner = Effect.fnUntraced(function* (
  { lockOwners }: typeof Operators.Service,
  { id, name }: Operator
) {
  const { operator } = yield* CurrentActor
  if (operator === undefined) return
  const [first, ...others] = yield* lockOwners
  if (first === id && others.length === 0) {
    const message = `${name} is the last owner: only gateway operators revoke, on the gateway's own machine, can.`
    return yield* new LockOut({ message })
  }
  if (operator === id) return yield* new LockOut({ message: "You cannot revoke yourself: another owner can." })
})

export const revokeOperator = (reference: string) =>
  changeOne("revoke", reference, operatorRecord, (operators, operator) =>
    Effect.zipRight(requireOtherOwner(operators, operator), operators.revoke(operator.id))
  )
