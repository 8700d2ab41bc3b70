import { hostname, userInfo } from "node:os"
import { Context, Layer } from "effect"
import type { Role } from "../../domain/Operator.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"

type Variables = Readonly<Record<string, string | undefined>>

/** A container may run as a user that has no name there. */
const accountOf = (read: () => { readonly username: string }): string => {
  try {
    return read().username
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`
  }
}

const longest = 100
const oneLine = (text: string) =>
  text
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, longest)

/** Such as `cli:ada`, `cli:ada@gw-1`, or `cli:root@gw-1 from 203.0.113.9`: SSH tells the address only. */
export const commandLineName = (
  given: string | undefined,
  { SSH_CONNECTION, SUDO_USER }: Variables,
  readAccount: () => { readonly username: string } = userInfo
): string => {
  if (given !== undefined) return `cli:${oneLine(given)}`
  const [address] = SSH_CONNECTION?.split(" ") ?? []
  const from = address ? ` from ${address}` : ""
  return `cli:${oneLine(`${SUDO_USER || accountOf(readAccount)}@${hostname()}${from}`)}`
}

/** Who reads or changes. */
export class CurrentActor extends Context.Tag("gateway/CurrentActor")<
  CurrentActor,
  {
    /** An operator's name, or `cli:` and who ran the command. */
    readonly name: string
    readonly via: "cli" | "api" | "console"
    readonly role: Role
    readonly operator: string | undefined
    /** What it may reach. */
    readonly scope: OrganizationScope
    /** A repeated change with the same key gets the result of the first one. */
    readonly idempotencyKey: string | undefined
  }
>() {
  /** Who runs the program, by the name that is given or else by the account. */
  static readonly commandLine = (given?: string) =>
    Layer.sync(CurrentActor, () => ({
      name: commandLineName(given, process.env),
      via: "cli" as const,
      role: "owner" as const,
      operator: undefined,
      scope: OrganizationScope.all,
      idempotencyKey: undefined
    }))
}
