import { Schema } from "effect"
import { readCallId } from "../../domain/CallId.ts"
import { Filled, isWithin, optional } from "../../domain/Constraints.ts"
import { ImageSource } from "../chat/PartSchema.ts"
import { longestName } from "../chat/Schema.ts"
import { AnyObject, otherThan, textOr } from "../schema/SharedFields.ts"

const CacheControl = Schema.Struct({
  type: Schema.Literal("ephemeral"),
  ttl: optional(Schema.Literal("5m", "1h"))
}).annotations({
  identifier: "MessagesCacheControl",
  description: "The prompt up to here is cached, for five minutes unless `ttl` says an hour."
})
export const mark = { cache_control: optional(CacheControl) }

export const TextBlock = Schema.Struct({
  type: Schema.Literal("text", "input_text", "output_text"),
  text: Schema.String,
  ...mark
}).annotations({ identifier: "MessagesTextBlock" })
const ImageBlock = Schema.Struct({
  type: Schema.Literal("image"),
  source: ImageSource,
  ...mark
}).annotations({ identifier: "MessagesImageBlock" })

const ToolReferenceBlock = Schema.Struct({
  type: Schema.Literal("tool_reference"),
  tool_name: Filled,
  ...mark
}).annotations({
  identifier: "MessagesToolReferenceBlock",
  description: "A tool that a search of the client found. Routes of other APIs receive its name as text."
})

const OtherBlock = Schema.Struct({
  type: otherThan(
    "text",
    "input_text",
    "output_text",
    "image",
    "document",
    "search_result",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "tool_reference",
    "container_upload"
  )
}).annotations({
  identifier: "MessagesOtherBlock",
  description:
    "Any other block: passed on to a route that speaks this API. Elsewhere the blocks of a host's own tools in an assistant's turn are left out; any other is a 400."
})

const shown = Schema.Array(Schema.Union(TextBlock, ImageBlock, ToolReferenceBlock, OtherBlock))

const DocumentBlock = Schema.Struct({
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
  ...mark
}).annotations({ identifier: "MessagesDocumentBlock" })

const SearchResultBlock = Schema.Struct({
  type: Schema.Literal("search_result"),
  source: Schema.String,
  title: Schema.String,
  content: Schema.Array(TextBlock),
  ...mark
}).annotations({ identifier: "MessagesSearchResultBlock" })

const ThinkingBlock = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: Schema.String
}).annotations({ identifier: "MessagesThinkingBlock", description: "As the answer had it." })
const RedactedThinkingBlock = Schema.Struct({
  type: Schema.Literal("redacted_thinking"),
  data: Schema.String
}).annotations({ identifier: "MessagesRedactedThinkingBlock" })

const CallId = Filled.pipe(
  Schema.filter((id) => isWithin(longestName, readCallId(id).id), {
    jsonSchema: { type: "string", minLength: 1, description: "As the answer had it." }
  })
)
const ToolUseBlock = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: CallId,
  name: Filled,
  input: AnyObject,
  ...mark
}).annotations({ identifier: "MessagesToolUseBlock" })
const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_use_id: Filled.annotations({ description: "A `tool_use` of an earlier assistant message." }),
  content: optional(
    Schema.Union(
      Schema.String,
      Schema.Array(
        Schema.Union(TextBlock, ImageBlock, DocumentBlock, SearchResultBlock, ToolReferenceBlock, OtherBlock)
      )
    )
  ),
  is_error: optional(Schema.Boolean),
  ...mark
}).annotations({ identifier: "MessagesToolResultBlock" })

export const UserTurn = Schema.Struct({
  role: Schema.Literal("user"),
  content: textOr(
    Schema.Union(
      TextBlock,
      ImageBlock,
      DocumentBlock,
      SearchResultBlock,
      ToolResultBlock,
      ToolReferenceBlock,
      OtherBlock
    )
  )
}).annotations({ identifier: "MessagesUserTurn" })
export const AssistantTurn = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: Schema.Union(
    Schema.String,
    Schema.Array(Schema.Union(TextBlock, ThinkingBlock, RedactedThinkingBlock, ToolUseBlock, OtherBlock))
  )
}).annotations({ identifier: "MessagesAssistantTurn" })
export const SystemTurn = Schema.Struct({ role: Schema.Literal("system"), content: textOr(TextBlock) }).annotations({
  identifier: "MessagesSystemTurn"
})
