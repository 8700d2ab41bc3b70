import { createHash } from "node:crypto"
import type { RouteBase } from "../../domain/Model.ts"

/** Google's placeholder for a missing signature. */
export const sentinel = "skip_thought_signature_validator"

const digestLength = 12
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** Valid for one host and model, and only undamaged. */
const digest = ({ model, provider }: RouteBase, signature: string): string =>
  createHash("sha256")
    .update(JSON.stringify([provider.baseUrl, model, signature]))
    .digest("base64url")
    .slice(0, digestLength)

export const seal = (route: RouteBase, signature: unknown): string | undefined =>
  typeof signature === "string" && base64.test(signature) ? digest(route, signature) + signature : undefined

/** Undefined where it is another route's, or damaged. */
export const unseal = (route: RouteBase, sealed: string | undefined): string | undefined => {
  const signature = sealed?.slice(digestLength)
  return signature !== undefined && seal(route, signature) === sealed ? signature : undefined
}
