import { Data } from "effect"

/** The embedded PostgreSQL cannot serve. The message is one line for the operator and names the way out. */
export class EmbeddedUnavailable extends Data.TaggedError("EmbeddedUnavailable")<{ readonly message: string }> {
  static because(reason: string) {
    const line = reason.replace(/\s+/g, " ").trim().replace(/\.$/, "")
    return new EmbeddedUnavailable({
      message: `The embedded database is not available: ${line}. Set DATABASE_URL to use a PostgreSQL server of your own.`
    })
  }
}
