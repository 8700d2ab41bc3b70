import { Data } from "effect"

/** The program ends with `exitCode`, or with 1. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly message: string
  readonly exitCode?: number
}> {}
