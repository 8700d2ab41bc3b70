import { Effect, identity, type Schema } from "effect"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { CurrentActor } from "./Actor.ts"
import { Audit } from "./AuditLog.ts"

/** An operation that the admin API, a command and the console share. */
export interface Operation<Run> {
  /** What the operation does, for the API's documentation and the command's help. Without a full stop. */
  readonly summary: string
  readonly run: Run
}

export const operation = <Run>(summary: string, run: Run): Operation<Run> => ({ summary, run })

interface Identified {
  readonly id: string
  readonly org?: string | null | undefined
}

interface Resource<Record extends Identified, Encoded, E, R> {
  /** The prefix of the resource's actions in the audit log, such as `keys`. */
  readonly name: string
  /** Must contain no secrets, because the audit log stores the record. */
  readonly record: Schema.Schema<Record, Encoded>
  readonly find: (scope: OrganizationScope, reference: string) => Effect.Effect<Record | undefined, E, R>
  /** The organization to which the record belongs. The default is the record's `org`. */
  readonly orgOf?: (record: Record) => string | undefined
}

/** Returns functions that change a resource and write its records before and after the change to the audit log. */
export const auditResource = <Record extends Identified, Encoded, E, R>({
  find,
  name,
  orgOf = ({ org }) => org ?? undefined,
  record
}: Resource<Record, Encoded, E, R>) => {
  const findInScope = (reference: string) => Effect.flatMap(CurrentActor, ({ scope }) => find(scope, reference))
  const common = {
    record,
    targetOf: ({ id }: Record) => id,
    orgOf
  }
  const changeWith = <A, E1, R1>(
    action: string,
    target: string,
    input: unknown,
    run: (scope: OrganizationScope, id: string) => Effect.Effect<A, E1, R1>,
    recordOf: (value: A) => Record
  ) =>
    Effect.flatMap(Audit, ({ change }) =>
      change<A, Record, Encoded, E | E1, R | R1 | CurrentActor>({
        ...common,
        action: `${name}.${action}`,
        input,
        target,
        find: findInScope,
        run: (id) => Effect.flatMap(CurrentActor, ({ scope }) => run(scope, id)),
        recordOf
      })
    )
  return {
    /** Audits `run`, which creates a record. `recordOf` extracts the record from the result. */
    create: <A, E1, R1>(
      action: string,
      input: unknown,
      run: Effect.Effect<A, E1, R1>,
      recordOf: (value: A) => Record
    ) =>
      Effect.flatMap(Audit, ({ create }) => create({ ...common, action: `${name}.${action}`, input, run, recordOf })),
    /** Changes an existing record under a lock on its id. */
    change: <E1, R1>(
      action: string,
      target: string,
      input: unknown,
      run: (scope: OrganizationScope, id: string) => Effect.Effect<Record, E1, R1>
    ) => changeWith(action, target, input, run, identity<Record>),
    /** Like `change`, for a `run` whose result has more than the record, such as a new secret. */
    changeWith
  }
}
