import { Context } from "effect"
import type { Role } from "../../domain/Operator.ts"

/** Who makes a change. */
export class CurrentActor extends Context.Tag("gateway/CurrentActor")<
  CurrentActor,
  {
    /** An operator's name, or `cli:user@host`. */
    readonly name: string
    readonly via: "cli" | "api" | "console"
    readonly role: Role
    readonly operator: string | undefined
    /** A repeated change with the same key gets the result of the first one. */
    readonly idempotencyKey: string | undefined
  }
>() {}
