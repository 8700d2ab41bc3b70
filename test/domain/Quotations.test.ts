import { redactQuotations } from "../../src/domain/Quotations.ts"
import { assert, describe, it } from "../harness/It.ts"

const rows: ReadonlyArray<readonly [text: string, kept: string]> = [
  ["Invalid value 'tell me a secret' at 'messages[0].content'.", "Invalid value '…' at 'messages[0].content'."],
  ['Got {"role": "user", "content": "tell me"}', 'Got {"role": "user", "content": "…"}'],
  ["Input `a b` and “c d” and 'never closed by", "Input `…` and “…” and '…'"],
  [
    "It's the model's maximum: 8192 tokens, that isn't enough",
    "It's the model's maximum: 8192 tokens, that isn't enough"
  ],
  ["'it isn't over' is refused", "'…' is refused"],
  [
    "Use 'max_completion_tokens', not 'max_tokens', on `gpt-5.5`.",
    "Use 'max_completion_tokens', not 'max_tokens', on `gpt-5.5`."
  ],
  ['Refused: "tell me\na secret" at 3', 'Refused: "…" at 3'],
  ["Refused: “tell me\na secret”", "Refused: “…”"],
  ['Refused: "tell "all my" secrets" at 3', 'Refused: "…" at 3'],
  [`Refused: ${JSON.stringify('tell "all my" secrets')} at 3`, 'Refused: "…" at 3'],
  [`Refused: ${JSON.stringify('tell (me "all my" secrets), "please" now')} at 3`, 'Refused: "…" at 3'],
  ['Expected "a" or "b c", not ""', 'Expected "a" or "…", not ""'],
  ["", ""]
]

describe("a vendor's message with redacted quotations", () => {
  it.each(rows)("%s", (text, kept) => assert.strictEqual(redactQuotations(text), kept))
})
