import { Schema } from "effect"
import { longestPrompt } from "../../domain/Media.ts"
import { isFilled } from "../body/Fields.ts"
import { Empty, Filled, upTo } from "./Constraints.ts"
import { problem } from "./Decoding.ts"
import { described, optional } from "./Described.ts"

const longest = longestPrompt.toLocaleString("en-US")

/** A form may have sent it as a file. */
const required = (value: unknown) => (value instanceof Uint8Array ? "must be text, not a file" : "is required")

export const modelOf = (kind: string) =>
  Filled.annotations({ ...problem(required), description: `The catalog id of ${kind}.` })

export const promptFor = (description: string) =>
  Filled.pipe(upTo(longestPrompt)).annotations({
    ...problem((value) => (isFilled(value) ? `must have at most ${longest} characters` : required(value))),
    description
  })

export const n = optional(Schema.Literal(1).annotations(problem("must be 1")), "Only 1.")
export const formN = described(Schema.Literal("1", ""), "Only 1.")

export const unsupported = (instead: string) =>
  described(Empty.annotations(problem(`is not supported: ${instead}`)), `Not supported: ${instead}.`)
export const formUnsupported = (instead: string) => described(Schema.Literal(""), `Not supported: ${instead}.`)
