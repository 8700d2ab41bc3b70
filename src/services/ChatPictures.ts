import { type Context, Effect } from "effect"
import type { ChatRequest, Message } from "../domain/Chat.ts"
import { InvalidRequest } from "../domain/Failure.ts"
import type { Picture } from "../domain/Media.ts"
import { toBase64 } from "./Base64.ts"
import * as Monotonic from "./Monotonic.ts"
import type { References } from "./References.ts"

/** The most different URLs that are fetched for one request. */
const mostFetched = 32

/** What routes are asked, and since when on the monotonic clock, where pictures have taken of the request's time. */
export interface Asked {
  readonly request: ChatRequest
  readonly since: number | undefined
}

const urlsOf = ({ messages }: ChatRequest): ReadonlySet<string> => {
  const urls = new Set<string>()
  for (const { content, role } of messages) {
    if (role !== "user" || typeof content === "string") continue
    for (const part of content) if (part.type === "image_url") urls.add(part.image_url.url)
  }
  return urls
}

const isData = (url: string): boolean => /^data:/i.test(url.slice(0, 5))

const dataUrl = ({ bytes, type }: Picture): string => `data:${type};base64,${toBase64(bytes)}`

const replaced = (message: Message, inlined: ReadonlyMap<string, string>): Message => {
  if (message.role !== "user" || typeof message.content === "string") return message
  const content = message.content.map((part) => {
    const url = part.type === "image_url" ? inlined.get(part.image_url.url) : undefined
    return part.type === "text" || url === undefined ? part : { ...part, image_url: { ...part.image_url, url } }
  })
  return { ...message, content }
}

/**
 * Looks at every picture that a request brings as a `data:` URL, and checks every other URL. Where a route wants it so,
 * fetches what they name, each once.
 */
export const prepare = Effect.fnUntraced(function* (
  { check, load }: Context.Tag.Service<References>,
  request: ChatRequest,
  inline: boolean
) {
  const since = yield* Monotonic.millis
  const fetched: Array<string> = []
  for (const url of urlsOf(request)) {
    if (isData(url)) {
      // One at a time, so that only one is decoded at any moment.
      yield* load([{ _tag: "Bytes", bytes: Buffer.from(url.slice(url.indexOf(",") + 1), "base64") }], "messages")
    } else {
      fetched.push(url)
    }
  }
  if (!inline) yield* check(fetched)
  if (!inline || fetched.length === 0) return { request, since }
  if (fetched.length > mostFetched) {
    const message = `At most ${mostFetched} different image URLs can be fetched for one request.`
    return yield* new InvalidRequest({ message, param: "messages" })
  }
  const references = fetched.map((url) => ({ _tag: "Url", url }) as const)
  const pictures = yield* load(references, "messages")
  const inlined = new Map<string, string>()
  pictures.forEach((picture, index) => inlined.set(fetched[index] ?? "", dataUrl(picture)))
  return { request: { ...request, inlined: request.messages.map((message) => replaced(message, inlined)) }, since }
})
