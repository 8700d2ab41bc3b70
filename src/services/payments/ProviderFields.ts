import { Schema } from "effect"

const maxLength = 255
/** The end of the year 9999, in Unix seconds: PostgreSQL and JavaScript both have it. */
const maxSeconds = 253_402_300_799

/** A text to store: PostgreSQL accepts no NUL. */
export const ProviderText = Schema.String.pipe(
  Schema.filter((text) => text.length <= maxLength && !text.includes("\0"))
)

export const ProviderTime = Schema.Int.pipe(Schema.between(0, maxSeconds))
