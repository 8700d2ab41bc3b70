import { CallArguments } from "../chat/CallArguments.ts"
import { asFields, asList, asText, type Fields, parseJsonExact } from "../client/Json.ts"

/** Fields of a block that come in pieces, by the kind of the delta. */
const texts: Readonly<Record<string, string>> = { text_delta: "text", thinking_delta: "thinking" }

const applyDelta = (block: Fields, delta: Fields): Fields => {
  const { type, ...changes } = delta
  const field = texts[asText(type)]
  if (field !== undefined) return { ...block, [field]: asText(block[field]) + asText(delta[field]) }
  if (type === "citations_delta") return { ...block, citations: [...asList(block.citations), delta.citation] }
  return { ...block, ...changes }
}

interface OpenBlock {
  block: Fields
  /** Its input comes in pieces; without any, the initial one counts. */
  input: string | undefined
  readonly given: CallArguments
}

const takeDelta = (open: OpenBlock, delta: Fields): void => {
  if (delta.type === "input_json_delta") {
    open.input = (open.input ?? "") + (open.given.take(asText(delta.partial_json)) ?? "")
  } else open.block = applyDelta(open.block, delta)
}

const toBlock = ({ block, given, input }: OpenBlock): Fields => {
  const value = input === undefined ? undefined : parseJsonExact(input + (given.end() ?? ""))
  return value === undefined ? block : { ...block, input: value }
}

/** The message that all events of a stream add up to. */
export const assemble = (events: ReadonlyArray<Fields>): Fields => {
  let message: Fields = {}
  const blocks = new Map<unknown, OpenBlock>()
  for (const { content_block, delta, index, message: started, type, usage, ...more } of events) {
    const change = asFields(delta)
    const open = blocks.get(index)
    if (type === "message_start") message = asFields(started)
    else if (type === "content_block_start") {
      blocks.set(index, { block: asFields(content_block), input: undefined, given: new CallArguments() })
    } else if (type === "content_block_delta" && open !== undefined) takeDelta(open, change)
    else if (type === "message_delta") {
      message = { ...message, ...more, ...change, usage: { ...asFields(message.usage), ...asFields(usage) } }
    }
  }
  return { ...message, content: [...blocks.values()].map(toBlock) }
}
