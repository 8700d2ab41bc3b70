import { hostname, userInfo } from "node:os"
import { Context, Layer } from "effect"
import type { Role } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"

type Variables = Readonly<Record<string, string | undefined>>

/** Tolerates a failure, because the user of a container may have no name. */
const accountOf = (read: () => { readonly username: string }): string => {
  try {
    return read().username
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`
  }
}

const maxLength = 100
const toOneLine = (text: string) =>
  text
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, maxLength)

/**
 * Returns `cli:ada`, `cli:ada@gw-1`, or `cli:root@gw-1 from 203.0.113.9` in an SSH session, whose client has only an
 * address.
 */
export const commandLineName = (
  name: string | undefined,
  { SSH_CONNECTION, SUDO_USER }: Variables,
  readAccount: () => { readonly username: string } = userInfo
): string => {
  if (name !== undefined) return `cli:${toOneLine(name)}`
  const [address] = SSH_CONNECTION?.split(" ") ?? []
  const from = address ? ` from ${address}` : ""
  return `cli:${toOneLine(`${SUDO_USER || accountOf(readAccount)}@${hostname()}${from}`)}`
}

/** Who performs the current operation: an operator of the admin API or console, or a user of the command line. */
export class CurrentActor extends Context.Tag("gateway/CurrentActor")<
  CurrentActor,
  {
    /** An operator's name, or the result of `commandLineName`. */
    readonly name: string
    readonly via: "cli" | "api" | "console"
    readonly role: Role
    readonly operator: string | undefined
    /** The organizations that the actor may access. */
    readonly scope: OrganizationScope
    /** Set by the client. A repeated change with the same key is not made again and returns the earlier record. */
    readonly idempotencyKey: string | undefined
  }
>() {
  /** The default name consists of the system account and host. */
  static readonly commandLine = (name?: string) =>
    Layer.sync(CurrentActor, () => ({
      name: commandLineName(name, process.env),
      via: "cli" as const,
      role: "owner" as const,
      operator: undefined,
      scope: OrganizationScope.all,
      idempotencyKey: undefined
    }))
}
