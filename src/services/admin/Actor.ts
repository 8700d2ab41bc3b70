import { hostname, userInfo } from "node:os"
import { Context, Layer } from "effect"
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
>() {
  /** Who runs the program. */
  static readonly commandLine = Layer.sync(CurrentActor, () => ({
    name: `cli:${userInfo().username}@${hostname()}`,
    via: "cli" as const,
    role: "owner" as const,
    operator: undefined,
    idempotencyKey: undefined
  }))
}
