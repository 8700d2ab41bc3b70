import { type Context, Effect, Predicate } from "effect"
import type { ChatRequest, ImagePart, Message } from "../../domain/Chat.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import type { Picture } from "../../domain/Media.ts"
import { nthImage } from "../../domain/ReferenceProblem.ts"
import { base64Length, decodeBase64, toBase64 } from "../media/Base64.ts"
import type { ReferenceImages } from "../media/ReferenceImages.ts"
import type { ProviderRouter } from "../routing/ProviderRouter.ts"
import * as EventLoop from "../runtime/EventLoop.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { type ReserveMemory, unlimitedMemory } from "../runtime/RequestMemory.ts"
import type { ChatTask } from "./ChatCharging.ts"

const maxFetched = 32

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

type Fields = Readonly<Record<string, unknown>>

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

/** Members that hold parts, of a native body and of a part. A tool's arguments are not parts. */
const bodyMembers = ["input", "messages", "system"]
const partMembers = ["content", "output", "source"]

const nativeSource = (url: string) => {
  const [, media_type, data] = /^data:([^;]*);base64,(.*)$/s.exec(url) ?? []
  return { type: "base64", media_type, data }
}

type Pictures = ReadonlyMap<string, string>

const pictureAt = (url: unknown, pictures: Pictures) => (Predicate.isString(url) ? pictures.get(url) : undefined)

const inlinePart = (part: Fields, pictures: Pictures): Fields | undefined => {
  const { image_url: image, source, type } = part
  if (type === "image" && Predicate.isRecord(source) && source["type"] === "url") {
    const picture = pictureAt(source["url"], pictures)
    return picture === undefined ? undefined : { ...part, source: nativeSource(picture) }
  }
  if (type !== "input_image" && type !== "image_url") return undefined
  const picture = pictureAt(Predicate.isRecord(image) ? image["url"] : image, pictures)
  if (picture === undefined) return undefined
  return { ...part, image_url: Predicate.isRecord(image) ? { ...image, url: picture } : picture }
}

const inlineMembers = (whole: Fields, names: ReadonlyArray<string>, pictures: Pictures): Fields => {
  const held = names.filter((name) => Predicate.isObject(whole[name]))
  if (held.length === 0) return whole
  const changed = held.map((name) => [name, inlineParts(whole[name], pictures)] as const)
  return keepSource(whole, { ...whole, ...Object.fromEntries(changed) })
}

const inlineParts = (value: unknown, pictures: Pictures): unknown => {
  if (Array.isArray(value))
    return keepSource(
      value,
      value.map((item) => inlineParts(item, pictures))
    )
  if (!Predicate.isRecord(value)) return value
  const inlined = inlinePart(value, pictures)
  return inlined === undefined ? inlineMembers(value, partMembers, pictures) : keepSource(value, inlined)
}

/** A provider may be unable to fetch from this gateway, whose address may be private. */
const inlineNative = ({ native, ...request }: ChatRequest, pictures: Pictures): ChatRequest =>
  native === undefined
    ? request
    : { ...request, native: { ...native, body: inlineMembers(native.body, bodyMembers, pictures) } }

export interface PictureServices {
  readonly references: Context.Tag.Service<ReferenceImages>
  readonly router: Context.Tag.Service<ProviderRouter>
}

/** Returns the task to route; its deadlines count from the start, because pictures take time. */
export const preparePictures = Effect.fnUntraced(function* ({ references, router }: PictureServices, task: ChatTask) {
  const { model, request, reserveMemory = unlimitedMemory, since = yield* Monotonic.millis } = task
  const isInlined = yield* router.inlines(model, request)
  const prepared = yield* inlinePictures(references, request, isInlined, reserveMemory)
  return { ...task, request: prepared, since }
})

/** Checks every picture, reads our own media, and fetches other URLs once if a route needs them inlined. */
const inlinePictures = Effect.fnUntraced(function* (
  { check, findOwn, load, loadWithin }: Context.Tag.Service<ReferenceImages>,
  request: ChatRequest,
  inline: boolean,
  reserve: ReserveMemory
) {
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
  const nameIn = (list: ReadonlyArray<string>) => (index: number) =>
    nthImage(named.get(list[index] ?? "") ?? 0, images.length)
  const ownUrls = yield* findOwn(urls)
  const passed = inline ? [] : urls.filter((url) => !ownUrls.has(url))
  if (passed.length > 0) yield* check(passed, nameIn(passed))
  const messages =
    rewritten.size === 0 ? request.messages : replaceAll(request.messages, (image) => rewritten.get(image))
  const read = inline ? urls : [...ownUrls]
  if (read.length === 0) return { ...request, messages }
  if (read.length > maxFetched) {
    const message = `At most ${maxFetched} different image URLs can be fetched for one request.`
    return yield* new InvalidRequest({ message, param: "messages" })
  }
  const loaded = yield* loadWithin(
    reserve,
    read.map((url) => ({ _tag: "Url", url }) as const),
    "messages",
    nameIn(read)
  )
  const pictures = new Map<string, string>()
  for (const [index, picture] of loaded.entries()) {
    yield* EventLoop.awaitSlice
    pictures.set(read[index] ?? "", dataUrl(picture))
  }
  const own = new Map([...pictures].filter(([url]) => ownUrls.has(url)))
  const withOwn = own.size === 0 ? request : inlineNative(request, own)
  const replaced = replaceAll(messages, ({ image_url: { url } }) => own.get(url))
  const inlined = inline ? replaceAll(messages, ({ image_url: { url } }) => pictures.get(url)) : undefined
  return { ...withOwn, messages: replaced, isLarge: true, inlined }
})
