import { Schema } from "effect"
import type { CacheControl, NativeOnly, Part, TextPart } from "../../domain/Chat.ts"
import { Filled, optional } from "../../domain/Constraints.ts"
import { someObject } from "../../domain/Json.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import { isAbsent, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { CallId } from "../chat/ChatTools.ts"
import {
  ImageSource,
  invalidType,
  isTextType,
  marked,
  readSource,
  readText,
  shownType,
  TextPartSchema,
  TextType
} from "../chat/ContentParts.ts"
import {
  below,
  invalidIn,
  type Path,
  readEach,
  readFilled,
  readObjectIn,
  readString,
  readWord
} from "../chat/FieldReaders.ts"
import { AnyObject, otherThan } from "../schema/SharedFields.ts"

export const ImageBlock = Schema.Struct({
  type: Schema.Literal("image"),
  source: ImageSource,
  ...marked
}).annotations({ identifier: "MessagesImageBlock" })

export const ToolReferenceBlock = Schema.Struct({
  type: Schema.Literal("tool_reference"),
  tool_name: Filled,
  ...marked
}).annotations({
  identifier: "MessagesToolReferenceBlock",
  description: "A tool that a search of the client found. Routes of other APIs receive its name as text."
})

/** The types of blocks that only a user's turn may hold. */
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
    "Any other block: passed on to a route that speaks this API. Elsewhere the blocks of a host's own tools in an assistant's turn are left out; any other is a 400."
})

const shown = Schema.Array(Schema.Union(TextPartSchema, ImageBlock, ToolReferenceBlock, OtherBlock))

export const DocumentBlock = Schema.Struct({
  type: Schema.Literal("document"),
  title: optional(Schema.String),
  context: optional(Schema.String),
  source: Schema.Union(
    Schema.Struct({ type: Schema.Literal("text"), data: Schema.String }),
    Schema.Struct({ type: Schema.Literal("content"), content: Schema.Union(Schema.String, shown) }),
    Schema.Struct({ type: Schema.Literal("base64"), media_type: optional(Schema.String), data: Filled }).annotations({
      description: "A PDF. Only for models with a route that speaks this API; 400 elsewhere."
    })
  ),
  ...marked
}).annotations({ identifier: "MessagesDocumentBlock" })

export const SearchResultBlock = Schema.Struct({
  type: Schema.Literal("search_result"),
  source: Schema.String,
  title: Schema.String,
  content: Schema.Array(TextPartSchema),
  ...marked
}).annotations({ identifier: "MessagesSearchResultBlock" })

export const ThinkingBlock = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: Schema.String
}).annotations({ identifier: "MessagesThinkingBlock", description: "As the answer had it." })
export const RedactedThinkingBlock = Schema.Struct({
  type: Schema.Literal("redacted_thinking"),
  data: Schema.String
}).annotations({ identifier: "MessagesRedactedThinkingBlock" })

export const ToolUseBlock = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: CallId,
  name: Filled,
  input: AnyObject,
  ...marked
}).annotations({ identifier: "MessagesToolUseBlock" })
export const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_use_id: Filled.annotations({ description: "A `tool_use` of an earlier assistant message." }),
  content: optional(
    Schema.Union(
      Schema.String,
      Schema.Array(
        Schema.Union(TextPartSchema, ImageBlock, DocumentBlock, SearchResultBlock, ToolReferenceBlock, OtherBlock)
      )
    )
  ),
  is_error: optional(Schema.Boolean),
  ...marked
}).annotations({ identifier: "MessagesToolResultBlock" })

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

export const readTextBlock = (block: JsonObject, path: Path): TextPart => ({
  ...readText(block, path),
  ...cacheControlOf(block)
})

const notKept = "must be base64 or a text: files are not kept here"

const heading = ({ context, title }: JsonObject): string =>
  [title, context]
    .filter(isFilled)
    .map((line) => `${line}\n`)
    .join("")

const readDocument = (block: JsonObject, path: Path, share: NativeShare): ReadonlyArray<Part> => {
  const source = readObjectIn(block, "source", path)
  const text = (content: string): ReadonlyArray<Part> => [
    { type: "text", text: heading(block) + content, ...cacheControlOf(block) }
  ]
  switch (source.type) {
    case "text":
      return text(readString(source, "data", below(path, "source")))
    case "content": {
      if (isString(source.content)) return text(source.content)
      const parts = readBlockParts(source.content, below(path, "source.content"), share)
      return heading(block) === "" ? parts : [...text(""), ...parts]
    }
    case "base64":
      share.only = { param: "messages", what: "Document input" }
      share.tokens = unbounded
      return isFilled(source.data) ? text("") : invalidIn(path, "source.data", "must be base64")
    default:
      return invalidIn(path, "source.type", notKept)
  }
}

const readSearchResult = (block: JsonObject, path: Path, share: NativeShare): ReadonlyArray<Part> => {
  const parts = readBlockParts(block.content, below(path, "content"), share)
  const lines = [block.title, block.source].filter(isFilled).map((line) => `${line}\n`)
  return [{ type: "text", text: lines.join(""), ...cacheControlOf(block) }, ...parts]
}

/** A tool that the client's search found; a host of this API adds its definition to the prompt. */
const readReference = (block: JsonObject, path: Path, share: NativeShare): ReadonlyArray<Part> => {
  const text = readFilled(block, "tool_name", path)
  share.addBlock(block)
  return [{ type: "text", text, ...cacheControlOf(block) }]
}

/**
 * A user's block, or one within a tool's result. One of an unknown type is left to routes that speak this API: without
 * it, a question would be another.
 */
export const readBlockPart = (block: JsonObject, path: Path, share: NativeShare): ReadonlyArray<Part> => {
  const { type } = block
  if (isTextType(type)) return [readTextBlock(block, path)]
  switch (type) {
    case "image":
      return [{ ...readSource(block, path), ...cacheControlOf(block) }]
    case "document":
      return readDocument(block, path, share)
    case "search_result":
      return readSearchResult(block, path, share)
    case "tool_reference":
      return readReference(block, path, share)
    case "container_upload":
      return invalidIn(path, "type", "is not supported: files are not kept here")
    default:
      share.leaveToNative(readWord(block, "type", path))
      share.addBlock(block)
      return []
  }
}

export const readBlocks = <A>(content: unknown, path: Path, readBlock: (block: JsonObject, path: Path) => A) =>
  readEach(content, path, readBlock, "must be a string or an array of content blocks")

export const readBlockParts = (content: unknown, path: Path, share: NativeShare): ReadonlyArray<Part> =>
  isAbsent(content) ? [] : readBlocks(content, path, (block, at) => readBlockPart(block, at, share)).flat()

/** A text, or blocks of nothing but text. */
export const readTexts = (content: unknown, path: Path): string | ReadonlyArray<TextPart> =>
  isString(content)
    ? content
    : readBlocks(content, path, (block, at) =>
        isTextType(block.type) ? readTextBlock(block, at) : invalidType(at, block.type, "text")
      )
