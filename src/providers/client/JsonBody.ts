import type { ChatRequest } from "../../domain/Chat.ts"
import { jsonTexts } from "../../domain/Json.ts"
import type { Steps } from "../../services/runtime/EventLoop.ts"
import { type Pieces, piecesOf } from "../../services/runtime/Pieces.ts"

/** A body of many MiB, to be written out in slices just before it is sent. */
export class LargeJson {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

export const jsonBody = ({ isLarge = false }: ChatRequest, value: object): string | LargeJson =>
  isLarge ? new LargeJson(value) : JSON.stringify(value)

export function* encodeJson({ value }: LargeJson): Steps<Pieces> {
  const parts: Array<Uint8Array> = []
  for (const text of jsonTexts(value)) {
    parts.push(Buffer.from(text))
    yield
  }
  return piecesOf(parts)
}
