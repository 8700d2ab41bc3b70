import { Schema } from "effect"
import type { CacheControl, NativeOnly, Part, TextPart } from "../../domain/Chat.ts"
import { NonEmptyString, optional } from "../../domain/Constraints.ts"
import { someObject } from "../../domain/Json.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import {
  fieldPath,
  invalidIn,
  isAbsent,
  isNonEmptyString,
  isObject,
  isString,
  type JsonObject,
  type Path,
  readEach,
  readNonEmptyString,
  readObjectIn,
  readRequiredString,
  readString
} from "../body/Guards.ts"
import { CallId } from "../chat/ChatTools.ts"
import {
  cacheMarkField,
  ImageSource,
  invalidType,
  isTextType,
  readImageSource,
  readText,
  shortenType,
  TextPartSchema,
  TextType
} from "../chat/ContentParts.ts"
import { AnyObject, otherThan } from "../schema/SharedFields.ts"

export const ImageBlock = Schema.Struct({
  type: Schema.Literal("image"),
  source: ImageSource,
  ...cacheMarkField
}).annotations({ identifier: "MessagesImageBlock" })

export const ToolReferenceBlock = Schema.Struct({
  type: Schema.Literal("tool_reference"),
  tool_name: NonEmptyString,
  ...cacheMarkField
}).annotations({
  identifier: "MessagesToolReferenceBlock",
  description: "A tool that the client's search found. Providers with another API receive its name as text."
})

/** The block types that only a user's turn may contain. */
export const userBlockTypes = [
  "image",
  "document",
  "search_result",
  "tool_result",
  "tool_reference",
  "container_upload"
] as const

export const OtherBlock = Schema.Struct({
  type: otherThan(...TextType.literals, ...userBlockTypes, "thinking", "redacted_thinking", "tool_use")
}).annotations({
  identifier: "MessagesOtherBlock",
  description:
    "Any other block. Providers with this API receive it. For others, the gateway drops blocks of hosted tools in an assistant's turn. Any other block returns 400."
})

const ContentBlocks = Schema.Array(Schema.Union(TextPartSchema, ImageBlock, ToolReferenceBlock, OtherBlock))

export const DocumentBlock = Schema.Struct({
  type: Schema.Literal("document"),
  title: optional(Schema.String),
  context: optional(Schema.String),
  source: Schema.Union(
    Schema.Struct({ type: Schema.Literal("text"), data: Schema.String }),
    Schema.Struct({ type: Schema.Literal("content"), content: Schema.Union(Schema.String, ContentBlocks) }),
    Schema.Struct({
      type: Schema.Literal("base64"),
      media_type: optional(Schema.String),
      data: NonEmptyString
    }).annotations({
      description: "A PDF. The model needs a provider with this API. Otherwise, the request returns 400."
    })
  ),
  ...cacheMarkField
}).annotations({ identifier: "MessagesDocumentBlock" })

export const SearchResultBlock = Schema.Struct({
  type: Schema.Literal("search_result"),
  source: Schema.String,
  title: Schema.String,
  content: Schema.Array(TextPartSchema),
  ...cacheMarkField
}).annotations({ identifier: "MessagesSearchResultBlock" })

export const ThinkingBlock = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: Schema.String
}).annotations({ identifier: "MessagesThinkingBlock", description: "A thinking block from an earlier response." })
export const RedactedThinkingBlock = Schema.Struct({
  type: Schema.Literal("redacted_thinking"),
  data: Schema.String
}).annotations({ identifier: "MessagesRedactedThinkingBlock" })

export const ToolUseBlock = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: CallId,
  name: NonEmptyString,
  input: AnyObject,
  ...cacheMarkField
}).annotations({ identifier: "MessagesToolUseBlock" })
export const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_use_id: NonEmptyString.annotations({
    description: "The id of a `tool_use` block in an earlier assistant message."
  }),
  content: optional(
    Schema.Union(
      Schema.String,
      Schema.Array(
        Schema.Union(TextPartSchema, ImageBlock, DocumentBlock, SearchResultBlock, ToolReferenceBlock, OtherBlock)
      )
    )
  ),
  is_error: optional(Schema.Boolean),
  ...cacheMarkField
}).annotations({ identifier: "MessagesToolResultBlock" })

/** The source types of images, and of documents whose length in tokens the gateway cannot know. */
const mediaSources: ReadonlySet<unknown> = new Set(["base64", "url", "file"])

/** The token count of a document of unknown length, which counts as the whole context. */
const unbounded = Number.POSITIVE_INFINITY

/** Collects the content that only the native body contains, because the common chat format cannot express it. */
export class NativeContent {
  /** The maximum number of tokens of this content. */
  tokens = 0
  /** Content without which the request would mean something else. It limits the request to routes with this API. */
  nativeOnly: NativeOnly | undefined

  add(value: unknown): void {
    this.tokens += jsonTokens(value)
  }

  /** Limits the request to routes with the Messages API. */
  requireNative(type: string): void {
    this.nativeOnly ??= { param: "messages", what: `The content block \`${shortenType(type)}\`` }
  }

  addBlock(block: JsonObject): void {
    if (someObject(block, ({ type }) => mediaSources.has(type))) this.tokens = unbounded
    else this.add(block)
  }
}

export const cacheControlOf = ({ cache_control: mark }: JsonObject): { readonly cache_control?: CacheControl } => {
  if (!isObject(mark) || mark.type !== "ephemeral") return {}
  return {
    cache_control: mark.ttl === "1h" || mark.ttl === "5m" ? { type: "ephemeral", ttl: mark.ttl } : { type: "ephemeral" }
  }
}

export const readTextBlock = (block: JsonObject, path: Path): TextPart => ({
  ...readText(block, path),
  ...cacheControlOf(block)
})

const filesNotStored = "must be base64 or text: the gateway stores no files"

const formatHeading = ({ context, title }: JsonObject): string =>
  [title, context]
    .filter(isNonEmptyString)
    .map((line) => `${line}\n`)
    .join("")

const readDocument = (block: JsonObject, path: Path, native: NativeContent): ReadonlyArray<Part> => {
  const source = readObjectIn(block, "source", path)
  const toTextParts = (content: string): ReadonlyArray<Part> => [
    { type: "text", text: formatHeading(block) + content, ...cacheControlOf(block) }
  ]
  switch (source.type) {
    case "text":
      return toTextParts(readString(source, "data", fieldPath(path, "source")))
    case "content": {
      if (isString(source.content)) return toTextParts(source.content)
      const parts = readBlockParts(source.content, fieldPath(path, "source.content"), native)
      return formatHeading(block) === "" ? parts : [...toTextParts(""), ...parts]
    }
    case "base64":
      native.nativeOnly = { param: "messages", what: "Document input" }
      native.tokens = unbounded
      return isNonEmptyString(source.data) ? toTextParts("") : invalidIn(path, "source.data", "must be base64")
    default:
      return invalidIn(path, "source.type", filesNotStored)
  }
}

const readSearchResult = (block: JsonObject, path: Path, native: NativeContent): ReadonlyArray<Part> => {
  const parts = readBlockParts(block.content, fieldPath(path, "content"), native)
  const lines = [block.title, block.source].filter(isNonEmptyString).map((line) => `${line}\n`)
  return [{ type: "text", text: lines.join(""), ...cacheControlOf(block) }, ...parts]
}

/** Reads a tool reference. It counts as native content, because a provider with this API adds the tool's definition. */
const readToolReference = (block: JsonObject, path: Path, native: NativeContent): ReadonlyArray<Part> => {
  const text = readNonEmptyString(block, "tool_name", path)
  native.addBlock(block)
  return [{ type: "text", text, ...cacheControlOf(block) }]
}

/**
 * Reads a block of a user's turn or of a tool result. A block of an unknown type limits the request to routes with this API,
 * because without the block the prompt could mean something else.
 */
export const readBlockPart = (block: JsonObject, path: Path, native: NativeContent): ReadonlyArray<Part> => {
  const { type } = block
  if (isTextType(type)) return [readTextBlock(block, path)]
  switch (type) {
    case "image":
      return [{ ...readImageSource(block, path), ...cacheControlOf(block) }]
    case "document":
      return readDocument(block, path, native)
    case "search_result":
      return readSearchResult(block, path, native)
    case "tool_reference":
      return readToolReference(block, path, native)
    case "container_upload":
      return invalidIn(path, "type", "is not supported: the gateway stores no files")
    default:
      native.requireNative(readRequiredString(block, "type", path))
      native.addBlock(block)
      return []
  }
}

export const readBlocks = <A>(content: unknown, path: Path, readBlock: (block: JsonObject, path: Path) => A) =>
  readEach(content, path, readBlock, "must be a string or an array of content blocks")

export const readBlockParts = (content: unknown, path: Path, native: NativeContent): ReadonlyArray<Part> =>
  isAbsent(content) ? [] : readBlocks(content, path, (block, at) => readBlockPart(block, at, native)).flat()

/** Reads a string or an array of text blocks. */
export const readTexts = (content: unknown, path: Path): string | ReadonlyArray<TextPart> =>
  isString(content)
    ? content
    : readBlocks(content, path, (block, at) =>
        isTextType(block.type) ? readTextBlock(block, at) : invalidType(at, block.type, "text")
      )
