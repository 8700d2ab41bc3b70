import { stripVTControlCharacters } from "node:util"
import { SqlError } from "@effect/sql/SqlError"
import { Cause, Data, Effect, Predicate } from "effect"
import { CatalogInvalid } from "./services/catalog/CatalogSource.ts"

export const inOneLine = (text: string): string => stripVTControlCharacters(text).replace(/\s+/g, " ").trim()

/** Makes the program print the message and exit with `exitCode`, which is 1 by default. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly message: string
  readonly exitCode?: number
}> {}

/** A command line that the program does not understand. Nothing was done. */
export class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {
  readonly exitCode = 2
}

export const explain = (error: unknown): string => {
  if (error instanceof CommandFailed || error instanceof UsageError) return error.message
  if (error instanceof SqlError) return `The database failed: ${explain(error.cause)}`
  if (error instanceof CatalogInvalid) return error.message
  if (error instanceof Error && error.message !== "") return inOneLine(error.message)
  if (Predicate.hasProperty(error, "cause") && error.cause !== undefined) return explain(error.cause)
  return inOneLine(String(error))
}

const codeOf = (error: unknown): number =>
  Predicate.hasProperty(error, "exitCode") && typeof error.exitCode === "number" ? error.exitCode : 1

const typeOf = (error: unknown) => (error instanceof UsageError ? "usage_error" : "command_failed")

type ErrorFormat = "text" | "json"

const describe = (error: unknown, format: ErrorFormat): string =>
  format === "text"
    ? `gateway: ${explain(error)}`
    : JSON.stringify({ error: { message: explain(error), type: typeOf(error) } })

/** Prints a failure to stderr, because stdout may already have the command's document. */
export const runToExitCode = <R>(
  program: Effect.Effect<unknown, unknown, R>,
  format: ErrorFormat = "text"
): Effect.Effect<number, never, R> =>
  program.pipe(
    Effect.as(0),
    Effect.catchAllCause((cause) =>
      Cause.isInterruptedOnly(cause)
        ? Effect.failCause(cause).pipe(Effect.orDie)
        : Effect.sync(() => {
            const error = Cause.squash(cause)
            process.stderr.write(`${describe(error, format)}\n`)
            return codeOf(error)
          })
    )
  )
