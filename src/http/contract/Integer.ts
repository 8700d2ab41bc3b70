import { Schema } from "effect"

/** Without a name of its own, so that the document shows a plain `integer` where it is used. */
export const Integer = Schema.Number.pipe(Schema.int())
