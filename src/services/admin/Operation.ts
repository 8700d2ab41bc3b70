import { Effect, identity, type Schema } from "effect"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { CurrentActor } from "./Actor.ts"
import { Audit } from "./Audit.ts"

/** What operators do with a resource, said once for the admin API, the commands and the console. */
export interface Operation<Run> {
  /** Without its full stop. */
  readonly summary: string
  readonly run: Run
}

export const operation = <Run>(summary: string, run: Run): Operation<Run> => ({ summary, run })

interface Identified {
  readonly id: string
  readonly org?: string | null | undefined
}

interface Resource<Record extends Identified, Encoded, E, R> {
  /** In the audit, before the action: `keys`. */
  readonly name: string
  /** Without secrets: the audit keeps it. */
  readonly record: Schema.Schema<Record, Encoded>
  readonly find: (scope: OrganizationScope, reference: string) => Effect.Effect<Record | undefined, E, R>
  /** By default its `org`. */
  readonly orgOf?: (record: Record) => string | undefined
}

/** Changes of a resource, each written down with what it was before and is after. */
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
    /** `recordOf` finds the record in what `run` makes. */
    create: <A, E1, R1>(
      action: string,
      input: unknown,
      run: Effect.Effect<A, E1, R1>,
      recordOf: (value: A) => Record
    ) =>
      Effect.flatMap(Audit, ({ create }) => create({ ...common, action: `${name}.${action}`, input, run, recordOf })),
    /** Changes an existing record under a lock of its id. */
    change: <E1, R1>(
      action: string,
      target: string,
      input: unknown,
      run: (scope: OrganizationScope, id: string) => Effect.Effect<Record, E1, R1>
    ) => changeWith(action, target, input, run, identity<Record>),
    /** Like `change`, for a `run` that returns more than the record. */
    changeWith
  }
}
