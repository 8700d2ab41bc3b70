import { Data } from "effect"

/** Why a command could not do what it was asked, in words for the operator. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{ readonly message: string }> {}
