import { Schema } from "effect"
import { longestPrompt } from "../../domain/Media.ts"
import { Empty, Filled, upTo } from "./Constraints.ts"
import { problem } from "./Decoding.ts"

/** A form may have sent it as a file. */
const Required = Filled.annotations(
  problem((value) => (value instanceof Uint8Array ? "must be text, not a file" : "is required"))
)

export const modelOf = (kind: string) => Required.annotations({ description: `The catalog id of ${kind}.` })

export const promptFor = (description: string) =>
  Required.pipe(upTo(longestPrompt)).annotations({
    ...problem(`must have at most ${longestPrompt.toLocaleString("en-US")} characters`),
    description
  })

export const One = Schema.Literal(1).annotations(problem("must be 1"))

/** A field of other services that would change what is made, had it anything in it. */
export const unsupported = (instead: string) => Empty.annotations(problem(`is not supported: ${instead}`))
