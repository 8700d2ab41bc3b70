import { Data } from "effect"

export class CommandFailed extends Data.TaggedError("CommandFailed")<{ readonly message: string }> {}
