import { type Context, Effect, Predicate } from "effect"
import type { ChatRequest, ImagePart, Message } from "../../domain/Chat.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { nthImage, type Picture } from "../../domain/Media.ts"
import { base64Length, decodeBase64, toBase64 } from "../media/Base64.ts"
import type { ReferenceImages } from "../media/ReferenceImages.ts"
import type { ProviderRouter } from "../routing/ProviderRouter.ts"
import * as EventLoop from "../runtime/EventLoop.ts"
import { type ReserveMemory, unlimitedMemory } from "../runtime/InFlight.ts"
import { monotonicMillis } from "../runtime/System.ts"
import type { ChatTask } from "./ChatCharging.ts"

const maxFetchedUrls = 32

function* imagesOf({ messages }: ChatRequest): Generator<ImagePart> {
  for (const { content, role } of messages) {
    if (role !== "user" || typeof content === "string") continue
    for (const part of content) if (part.type === "image_url") yield part
  }
}

const isDataUrl = (url: string): boolean => /^data:/i.test(url.slice(0, 5))

const prefixOf = ({ type }: Picture): string => `data:${type};base64,`

const toDataUrl = (picture: Picture): string => prefixOf(picture) + toBase64(picture.bytes)

/**
 * Returns whether the base64 is canonical: one line, padded, the standard alphabet. Some decoders accept nothing else.
 */
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

/** Members that may contain content parts: of a native body, and of a part. Tool arguments contain none. */
const bodyMembers = ["input", "messages", "system"]
const partMembers = ["content", "output", "source"]

const toNativeSource = (url: string) => {
  const [, media_type, data] = /^data:([^;]*);base64,(.*)$/s.exec(url) ?? []
  return { type: "base64", media_type, data }
}

type Pictures = ReadonlyMap<string, string>

const findPicture = (url: unknown, pictures: Pictures) => (Predicate.isString(url) ? pictures.get(url) : undefined)

const inlinePart = (part: Fields, pictures: Pictures): Fields | undefined => {
  const { image_url: image, source, type } = part
  if (type === "image" && Predicate.isRecord(source) && source["type"] === "url") {
    const picture = findPicture(source["url"], pictures)
    return picture === undefined ? undefined : { ...part, source: toNativeSource(picture) }
  }
  if (type !== "input_image" && type !== "image_url") return undefined
  const picture = findPicture(Predicate.isRecord(image) ? image["url"] : image, pictures)
  if (picture === undefined) return undefined
  return { ...part, image_url: Predicate.isRecord(image) ? { ...image, url: picture } : picture }
}

const inlineMembers = (value: Fields, names: ReadonlyArray<string>, pictures: Pictures): Fields => {
  const presentNames = names.filter((name) => Predicate.isObject(value[name]))
  if (presentNames.length === 0) return value
  const replacements = presentNames.map((name) => [name, inlineParts(value[name], pictures)] as const)
  return keepSource(value, { ...value, ...Object.fromEntries(replacements) })
}

const inlineParts = (value: unknown, pictures: Pictures): unknown => {
  if (Array.isArray(value))
    return keepSource(
      value,
      value.map((item) => inlineParts(item, pictures))
    )
  if (!Predicate.isRecord(value)) return value
  const inlinedPart = inlinePart(value, pictures)
  return inlinedPart === undefined ? inlineMembers(value, partMembers, pictures) : keepSource(value, inlinedPart)
}

/**
 * Inlines images of this gateway's media store in the client's own body, because providers may be unable to reach this
 * gateway's address.
 */
const inlineNative = ({ native, ...request }: ChatRequest, pictures: Pictures): ChatRequest =>
  native === undefined
    ? request
    : { ...request, native: { ...native, body: inlineMembers(native.body, bodyMembers, pictures) } }

export interface MessageImageServices {
  readonly references: Context.Tag.Service<ReferenceImages>
  readonly router: Context.Tag.Service<ProviderRouter>
}

/** Returns the task with checked and inlined images. Its deadlines start before the images are fetched. */
export const prepareImages = Effect.fnUntraced(function* (
  { references, router }: MessageImageServices,
  task: ChatTask
) {
  const { model, request, reserveMemory = unlimitedMemory, since = yield* monotonicMillis } = task
  const isInlined = yield* router.inlines(model, request)
  const preparedRequest = yield* loadImages(references, request, isInlined, reserveMemory)
  return { ...task, request: preparedRequest, since }
})

/** Checks every image, reads the gateway's own media, and fetches other URLs once if a route needs them inlined. */
const loadImages = Effect.fnUntraced(function* (
  { check, findOwn, load, loadWithin }: Context.Tag.Service<ReferenceImages>,
  request: ChatRequest,
  isInlined: boolean,
  reserve: ReserveMemory
) {
  const images = [...imagesOf(request)]
  /** Keyed by URL. */
  const indexByUrl = new Map<string, number>()
  const urlByImage = new Map<ImagePart, string>()
  for (const [index, image] of images.entries()) {
    const { url } = image.image_url
    if (!isDataUrl(url)) {
      if (!indexByUrl.has(url)) indexByUrl.set(url, index)
      continue
    }
    const text = url.slice(url.indexOf(",") + 1)
    const bytes = (yield* EventLoop.run(decodeBase64(text), request.isLarge)) ?? new Uint8Array()
    // Loads the images one by one, so only one is decoded in memory at any time.
    const [picture] = yield* load([{ _tag: "Bytes", bytes }], "messages", () => nthImage(index, images.length))
    if (picture === undefined) continue
    if (!isCanonical(text, bytes)) urlByImage.set(image, toDataUrl(picture))
    else if (!url.startsWith(prefixOf(picture))) urlByImage.set(image, prefixOf(picture) + text)
  }
  const urls = [...indexByUrl.keys()]
  const nameIn = (list: ReadonlyArray<string>) => (index: number) =>
    nthImage(indexByUrl.get(list[index] ?? "") ?? 0, images.length)
  const ownUrls = yield* findOwn(urls)
  const remoteUrls = isInlined ? [] : urls.filter((url) => !ownUrls.has(url))
  if (remoteUrls.length > 0) yield* check(remoteUrls, nameIn(remoteUrls))
  const messages =
    urlByImage.size === 0 ? request.messages : replaceAll(request.messages, (image) => urlByImage.get(image))
  const urlsToRead = isInlined ? urls : [...ownUrls]
  if (urlsToRead.length === 0) return { ...request, messages }
  if (urlsToRead.length > maxFetchedUrls) {
    const message = `At most ${maxFetchedUrls} different image URLs can be fetched for one request.`
    return yield* new InvalidRequest({ message, param: "messages" })
  }
  const loadedPictures = yield* loadWithin(
    reserve,
    urlsToRead.map((url) => ({ _tag: "Url", url }) as const),
    "messages",
    nameIn(urlsToRead)
  )
  const pictures = new Map<string, string>()
  for (const [index, picture] of loadedPictures.entries()) {
    yield* EventLoop.awaitSlice
    pictures.set(urlsToRead[index] ?? "", toDataUrl(picture))
  }
  const ownPictures = new Map([...pictures].filter(([url]) => ownUrls.has(url)))
  const withOwn = ownPictures.size === 0 ? request : inlineNative(request, ownPictures)
  const replacedMessages = replaceAll(messages, ({ image_url: { url } }) => ownPictures.get(url))
  const inlinedMessages = isInlined ? replaceAll(messages, ({ image_url: { url } }) => pictures.get(url)) : undefined
  return { ...withOwn, messages: replacedMessages, isLarge: true, inlined: inlinedMessages }
})
