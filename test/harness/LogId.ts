import { randomUUID } from "node:crypto"

/** Returns a version 7 UUID of a moment in Unix milliseconds, such as the ids of log rows. */
export const logIdAt = (at: number = Date.now()): string => {
  const time = at.toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
