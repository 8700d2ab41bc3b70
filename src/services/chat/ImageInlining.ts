import { type Context, Effect } from "effect"
import type { ChatRequest, ImagePart, Message } from "../../domain/Chat.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { Picture } from "../../domain/Media.ts"
import { nthImage } from "../../domain/ReferenceProblem.ts"
import { base64Length, decodeBase64, toBase64 } from "../media/Base64.ts"
import type { ReferenceImages } from "../media/ReferenceImages.ts"
import * as EventLoop from "../runtime/EventLoop.ts"
import * as Monotonic from "../runtime/Monotonic.ts"

const maxFetched = 32

/** `since`, on the monotonic clock, is the start if pictures took time. */
export interface PreparedRequest {
  readonly request: ChatRequest
  readonly since: number | undefined
}

function* imagesOf({ messages }: ChatRequest): Generator<ImagePart> {
  for (const { content, role } of messages) {
    if (role !== "user" || typeof content === "string") continue
    for (const part of content) if (part.type === "image_url") yield part
  }
}

const isData = (url: string): boolean => /^data:/i.test(url.slice(0, 5))

const prefixOf = ({ type }: Picture): string => `data:${type};base64,`

const dataUrl = (picture: Picture): string => prefixOf(picture) + toBase64(picture.bytes)

/** Any decoder takes it: one line, padded, the usual alphabet. */
const isCanonical = (text: string, bytes: Uint8Array): boolean =>
  text.length === base64Length(bytes.length) && !text.includes("-") && !text.includes("_")

type Replace = (image: ImagePart) => string | undefined

const replaceUrls = (message: Message, replace: Replace): Message => {
  if (message.role !== "user" || typeof message.content === "string") return message
  const content = message.content.map((part) => {
    const url = part.type === "image_url" ? replace(part) : undefined
    return part.type === "text" || url === undefined ? part : { ...part, image_url: { ...part.image_url, url } }
  })
  return { ...message, content }
}

const replaceAll = (messages: ReadonlyArray<Message>, replace: Replace): ReadonlyArray<Message> =>
  messages.map((message) => replaceUrls(message, replace))

/** Checks every picture, and fetches each URL once where a route wants it inlined. */
export const prepareImages = Effect.fnUntraced(function* (
  { check, load }: Context.Tag.Service<ReferenceImages>,
  request: ChatRequest,
  inline: boolean
) {
  const since = yield* Monotonic.millis
  const images = [...imagesOf(request)]
  /** With their places among the images. */
  const named = new Map<string, number>()
  const rewritten = new Map<ImagePart, string>()
  for (const [index, image] of images.entries()) {
    const { url } = image.image_url
    if (!isData(url)) {
      if (!named.has(url)) named.set(url, index)
      continue
    }
    const text = url.slice(url.indexOf(",") + 1)
    const bytes = (yield* EventLoop.run(decodeBase64(text), request.isLarge)) ?? new Uint8Array()
    // One at a time, so that only one is decoded at any moment.
    const [picture] = yield* load([{ _tag: "Bytes", bytes }], "messages", () => nthImage(index, images.length))
    if (picture === undefined) continue
    if (!isCanonical(text, bytes)) rewritten.set(image, dataUrl(picture))
    else if (!url.startsWith(prefixOf(picture))) rewritten.set(image, prefixOf(picture) + text)
  }
  const urls = [...named.keys()]
  const nameUrl = (index: number) => nthImage(named.get(urls[index] ?? "") ?? 0, images.length)
  if (!inline) yield* check(urls, nameUrl)
  const messages =
    rewritten.size === 0 ? request.messages : replaceAll(request.messages, (image) => rewritten.get(image))
  if (!inline || urls.length === 0) return { request: { ...request, messages }, since }
  if (urls.length > maxFetched) {
    const message = `At most ${maxFetched} different image URLs can be fetched for one request.`
    return yield* new InvalidRequest({ message, param: "messages" })
  }
  const pictures = yield* load(
    urls.map((url) => ({ _tag: "Url", url }) as const),
    "messages",
    nameUrl
  )
  const fetched = new Map<string, string>()
  for (const [index, picture] of pictures.entries()) {
    yield* EventLoop.awaitSlice
    fetched.set(urls[index] ?? "", dataUrl(picture))
  }
  const inlined = replaceAll(messages, (image) => fetched.get(image.image_url.url))
  return { request: { ...request, messages, isLarge: true, inlined }, since }
})
