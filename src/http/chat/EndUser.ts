import type { ChatRequest } from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { isObject } from "../body/Guards.ts"

const withoutId = (metadata: unknown): unknown => {
  if (!isObject(metadata) || !("user_id" in metadata)) return metadata
  const { user_id: _, ...others } = metadata
  return Object.keys(others).length === 0 ? undefined : keepSource(metadata, others)
}

/** A native body would name the customer's users to the provider. */
export const withoutEndUser = (request: ChatRequest): ChatRequest => {
  const { native } = request
  if (native === undefined) return request
  const { metadata: given, safety_identifier, user, ...others } = native.body
  const metadata = native.dialect === "messages" ? withoutId(given) : given
  if (metadata === given && user === undefined && safety_identifier === undefined) return request
  const body = metadata === undefined ? others : { ...others, metadata }
  return { ...request, native: { ...native, body: keepSource(native.body, body) } }
}
