import { stripVTControlCharacters } from "node:util"
import { SqlError } from "@effect/sql/SqlError"
import { Cause, Effect, Predicate } from "effect"
import { CatalogInvalid } from "./services/catalog/Problem.ts"

export const inOneLine = (text: string): string => stripVTControlCharacters(text).replace(/\s+/g, " ").trim()

export const explain = (error: unknown): string => {
  if (error instanceof SqlError) return `The database failed: ${explain(error.cause)}`
  if (error instanceof CatalogInvalid) return error.message
  if (error instanceof Error && error.message !== "") return inOneLine(error.message)
  if (Predicate.hasProperty(error, "cause") && error.cause !== undefined) return explain(error.cause)
  return inOneLine(String(error))
}

const codeOf = (error: unknown): number =>
  Predicate.hasProperty(error, "exitCode") && typeof error.exitCode === "number" ? error.exitCode : 1

export const exitCode = <R>(
  program: Effect.Effect<unknown, unknown, R>,
  explained: (error: unknown) => string = explain
): Effect.Effect<number, never, R> =>
  program.pipe(
    Effect.as(0),
    Effect.catchAllCause((cause) =>
      Cause.isInterruptedOnly(cause)
        ? Effect.failCause(cause).pipe(Effect.orDie)
        : Effect.sync(() => {
            const error = Cause.squash(cause)
            process.stderr.write(`gateway: ${explained(error)}\n`)
            return codeOf(error)
          })
    )
  )
