import type { IncomingMessage } from "node:http"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { isFilled, isObject, modelIn } from "../body/Guards.ts"
import { refuse } from "../body/Refusals.ts"
import { gatewayTag, tagPattern } from "../schema/Headers.ts"

const longestEndUser = 128

/** In characters. A part of a text would keep all of it in memory. */
const cut = (text: string): string =>
  text.length <= longestEndUser
    ? text
    : Array.from(text.slice(0, 2 * longestEndUser))
        .slice(0, longestEndUser)
        .join("")

/** Undefined without a tag, and where it is not valid. */
export const tagOf = ({ headers }: IncomingMessage): string | undefined => {
  const tag = headers[gatewayTag]
  return typeof tag === "string" && tagPattern.test(tag) ? tag : undefined
}

const endUserIn = (body: unknown, isInMetadata: boolean): string | undefined => {
  if (!isObject(body)) return undefined
  const { metadata, safety_identifier, user } = body
  const id = isInMetadata && isObject(metadata) ? metadata.user_id : undefined
  const name = [user, safety_identifier, id].find(isFilled)
  return name === undefined ? undefined : cut(name)
}

export const refuseTag = (): InvalidRequest =>
  refuse(null, "`x-gateway-tag` must be 1 to 64 of A-Z, a-z, 0-9, dots, underscores and dashes.")

/**
 * Records the model that a body names, and whom the request is for, whom a dialect may name in the metadata too. Returns
 * the refusal of a tag that is not valid.
 */
export const attribute = (
  { record, request }: { readonly record: RequestRecord; readonly request: IncomingMessage },
  body: unknown,
  isInMetadata = false
): InvalidRequest | undefined => {
  record.add({ type: "read", model: modelIn(body), endUser: endUserIn(body, isInMetadata) })
  return record.facts.tag === undefined && request.headers[gatewayTag] !== undefined ? refuseTag() : undefined
}
