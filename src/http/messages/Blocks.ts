import type { CacheControl, ImagePart, NativeOnly, Part, TextPart } from "../../domain/Chat.ts"
import { someObject } from "../../domain/Json.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import { isAbsent, isArray, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import {
  isTextType,
  type Path,
  readSource,
  readText,
  shownType,
  wrongAt,
  wrongIn,
  wrongType
} from "../chat/ContentParts.ts"
import { isRefusal, type Result, readEach } from "../chat/Result.ts"

/** Source types of pictures, and of documents whose length cannot be known. */
const sources: ReadonlySet<unknown> = new Set(["base64", "url", "file"])

/** The token count of a document of unknown length: the whole context. */
const unbounded = Number.POSITIVE_INFINITY

/** What a native route gets beside the translated conversation. */
export class NativeShare {
  /** An upper bound of its tokens. */
  tokens = 0
  /** The part of the request that only the native body holds. */
  only: NativeOnly | undefined

  add(value: unknown): void {
    this.tokens += jsonTokens(value)
  }

  /** A block of such a type means something that other routes would not see. */
  leaveToNative(type: string): void {
    this.only ??= { param: "messages", what: `The content block \`${shownType(type)}\`` }
  }

  addBlock(block: JsonObject): void {
    if (someObject(block, ({ type }) => sources.has(type))) this.tokens = unbounded
    else this.add(block)
  }
}

export const cacheControlOf = ({ cache_control: mark }: JsonObject): { readonly cache_control?: CacheControl } => {
  if (!isObject(mark) || mark.type !== "ephemeral") return {}
  return {
    cache_control: mark.ttl === "1h" || mark.ttl === "5m" ? { type: "ephemeral", ttl: mark.ttl } : { type: "ephemeral" }
  }
}

export const readTextBlock = (block: JsonObject, path: Path): Result<TextPart> => {
  const text = readText(block, path)
  return isRefusal(text) ? text : { ...text, ...cacheControlOf(block) }
}

const notKept = "must be base64 or a text: files are not kept here"

const readImage = (block: JsonObject, path: Path): Result<ImagePart> => {
  const image = readSource(block, path)
  return isRefusal(image) ? image : { ...image, ...cacheControlOf(block) }
}

const heading = ({ context, title }: JsonObject): string =>
  [title, context]
    .filter(isFilled)
    .map((line) => `${line}\n`)
    .join("")

const readDocument = (block: JsonObject, path: Path, share: NativeShare): Result<ReadonlyArray<Part>> => {
  const { source } = block
  if (!isObject(source)) return wrongIn(path, "source", "is required and must be an object")
  const text = (content: string): ReadonlyArray<Part> => [
    { type: "text", text: heading(block) + content, ...cacheControlOf(block) }
  ]
  switch (source.type) {
    case "text":
      return isString(source.data) ? text(source.data) : wrongIn(path, "source.data", "must be a string")
    case "content": {
      if (isString(source.content)) return text(source.content)
      const parts = readParts(source.content, () => `${path()}.source.content`, share)
      if (isRefusal(parts)) return parts
      return heading(block) === "" ? parts : [...text(""), ...parts]
    }
    case "base64":
      share.only = { param: "messages", what: "Document input" }
      share.tokens = unbounded
      return isFilled(source.data) ? text("") : wrongIn(path, "source.data", "must be base64")
    default:
      return wrongIn(path, "source.type", notKept)
  }
}

const readSearchResult = (block: JsonObject, path: Path, share: NativeShare): Result<ReadonlyArray<Part>> => {
  const parts = readParts(block.content, () => `${path()}.content`, share)
  if (isRefusal(parts)) return parts
  const lines = [block.title, block.source].filter(isFilled).map((line) => `${line}\n`)
  return [{ type: "text", text: lines.join(""), ...cacheControlOf(block) }, ...parts]
}

/** A tool that the client's search found; a host of this API adds its definition to the prompt. */
const readReference = (block: JsonObject, path: Path, share: NativeShare): Result<ReadonlyArray<Part>> => {
  if (!isFilled(block.tool_name)) return wrongIn(path, "tool_name", "is required and must be a non-empty string")
  share.addBlock(block)
  return [{ type: "text", text: block.tool_name, ...cacheControlOf(block) }]
}

/**
 * A user's block, or one within a tool's result. One of an unknown type is left to routes that speak this API: without
 * it, a question would be another.
 */
export const readPart = (block: JsonObject, path: Path, share: NativeShare): Result<ReadonlyArray<Part>> => {
  const { type } = block
  if (isTextType(type) || type === "image") {
    const part = type === "image" ? readImage(block, path) : readTextBlock(block, path)
    return isRefusal(part) ? part : [part]
  }
  switch (type) {
    case "document":
      return readDocument(block, path, share)
    case "search_result":
      return readSearchResult(block, path, share)
    case "tool_reference":
      return readReference(block, path, share)
    case "container_upload":
      return wrongIn(path, "type", "is not supported: files are not kept here")
    default:
      if (!isFilled(type)) return wrongIn(path, "type", "is required and must be a string")
      share.addBlock(block)
      share.leaveToNative(type)
      return []
  }
}

export const readBlocks = <A>(
  content: unknown,
  path: Path,
  readBlock: (block: JsonObject, path: Path) => Result<A>
): Result<ReadonlyArray<A>> => {
  if (!isArray(content)) return wrongAt(path(), "must be a string or an array of content blocks")
  return readEach(content, (block, index) => {
    const at = () => `${path()}[${index}]`
    return isObject(block) ? readBlock(block, at) : wrongAt(at(), "must be an object")
  })
}

export const readParts = (content: unknown, path: Path, share: NativeShare): Result<ReadonlyArray<Part>> => {
  if (isAbsent(content)) return []
  const parts = readBlocks(content, path, (block, at) => readPart(block, at, share))
  return isRefusal(parts) ? parts : parts.flat()
}

/** A text, or blocks of nothing but text. */
export const readTexts = (content: unknown, path: Path): Result<string | ReadonlyArray<TextPart>> => {
  if (isString(content)) return content
  return readBlocks(content, path, (block, at) =>
    isTextType(block.type) ? readTextBlock(block, at) : wrongType(at, block.type, "text")
  )
}
