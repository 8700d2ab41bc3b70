import { singleValue } from "../chat/CallArguments.ts"
import { asFields, asList, asText, type Fields, parseJson } from "../client/Json.ts"

/** Fields of a block that come in pieces, by the kind of the delta. */
const texts: Readonly<Record<string, string>> = { text_delta: "text", thinking_delta: "thinking" }

const applyDelta = (block: Fields, delta: Fields): Fields => {
  const { type, ...changes } = delta
  const field = texts[asText(type)]
  if (field !== undefined) return { ...block, [field]: asText(block[field]) + asText(delta[field]) }
  if (type === "citations_delta") return { ...block, citations: [...asList(block.citations), delta.citation] }
  return { ...block, ...changes }
}

/** A block that gathers its input, which is the host's initial one where no piece comes. */
interface Gathered {
  readonly block: Fields
  readonly input: string
}

const toBlock = ({ block, input }: Gathered): Fields => {
  const value = input === "" ? undefined : parseJson(singleValue(input) ?? "")
  return value === undefined ? block : { ...block, input: value }
}

/** The message that the events of a whole stream add up to. */
export const assemble = (events: ReadonlyArray<Fields>): Fields => {
  let message: Fields = {}
  const blocks = new Map<unknown, Gathered>()
  for (const { content_block, delta, index, message: started, type, usage, ...more } of events) {
    const change = asFields(delta)
    const open = blocks.get(index)
    if (type === "message_start") message = asFields(started)
    else if (type === "content_block_start") blocks.set(index, { block: asFields(content_block), input: "" })
    else if (type === "message_delta") {
      message = { ...message, ...more, ...change, usage: { ...asFields(message.usage), ...asFields(usage) } }
    } else if (type === "content_block_delta" && open !== undefined) {
      if (change.type === "input_json_delta")
        blocks.set(index, { ...open, input: open.input + asText(change.partial_json) })
      else blocks.set(index, { ...open, block: applyDelta(open.block, change) })
    }
  }
  return { ...message, content: [...blocks.values()].map(toBlock) }
}
