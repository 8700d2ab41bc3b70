import type { Client } from "pg"

/**
 * Hides the process id of a client from @effect/sql-pg, whose interruption of a statement would cancel whatever that
 * backend runs by then, of another request too. Needed by @effect/sql-pg 0.53 and pg 8.23.
 */
export const hideProcessId = (client: Client): void => {
  Object.defineProperty(client, "processID", { get: () => undefined, set: () => {} })
}
