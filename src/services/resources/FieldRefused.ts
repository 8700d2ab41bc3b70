import { Data } from "effect"

/** How a surface calls a field of a request, with what it may be: a body by its name, a command by its option. */
type NameField = (field: string, values?: string) => string

/** A field that is wrong beside others, or at this moment. */
export class FieldRefused extends Data.TaggedError("FieldRefused")<{
  readonly field: string
  readonly explain: (name: NameField) => string
}> {}
