import { SchemaAST as AST, ParseResult, Schema } from "effect"
import { enteredUsd, NanoUsd, toUsd } from "../../domain/Money.ts"
import { findNearest } from "../../domain/Nearest.ts"

const mostMistakes = ({ length }: string): number => (length < 4 ? 0 : length < 7 ? 1 : 2)

/** `grace` is `grace_seconds` without its unit, as commands call it. */
const findMeant = (given: string, known: ReadonlyArray<string>): string | undefined =>
  findNearest(given, known, mostMistakes)[0] ?? known.find((name) => name.startsWith(`${given}_`))

const explain = (given: string, known: ReadonlyArray<string>): string => {
  const meant = findMeant(given, known)
  return meant === undefined ? `Unknown field \`${given}\`.` : `Unknown field \`${given}\`; did you mean \`${meant}\`?`
}

const explainUnexpected = (issue: ParseResult.ParseIssue, known: ReadonlyArray<string>): ParseResult.ParseIssue => {
  if (issue._tag === "Composite" && "_tag" in issue.issues) {
    return new ParseResult.Composite(issue.ast, issue.actual, explainUnexpected(issue.issues, known), issue.output)
  }
  if (issue._tag !== "Pointer" || issue.issue._tag !== "Unexpected") return issue
  const message = explain(String(issue.path), known)
  return new ParseResult.Pointer(issue.path, issue.actual, new ParseResult.Unexpected(issue.issue.actual, message))
}

/** Refuses a body with a field that it does not have, first of all, and says which was meant. */
export const refuseUnknownFields = <A, I, R>(body: Schema.Schema<A, I, R>): Schema.Schema<A, I, R> => {
  const known = AST.getPropertySignatures(body.ast).map(({ name }) => String(name))
  return body.annotations({
    jsonSchema: { additionalProperties: false },
    parseOptions: { onExcessProperty: "error" },
    decodingFallback: (issue) => ParseResult.fail(explainUnexpected(issue, known))
  })
}

/** A field of a body with one message for every fault. */
export const field = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) => {
  const message = `\`${name}\` ${problem}.`
  return Schema.propertySignature(
    schema.annotations({ description, message: () => ({ message, override: true }) })
  ).annotations({ description, missingMessage: () => message })
}

export const optionalField = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) =>
  Schema.optional(
    schema.annotations({ description, message: () => ({ message: `\`${name}\` ${problem}.`, override: true }) })
  ).annotations({ description })

/** A body of these fields and no other. */
export const body = <Fields extends Schema.Struct.Fields>(fields: Fields) => refuseUnknownFields(Schema.Struct(fields))

/** Text that the database can hold. */
export const Text = Schema.String.pipe(Schema.filter((text) => !/[\0\p{Cs}]/u.test(text), { jsonSchema: {} }))

export const filledTo = (longest: number) =>
  Text.pipe(
    Schema.filter((text) => text.trim() !== "" && text.length <= longest, { jsonSchema: { maxLength: longest } })
  )

const textOf = (usd: number | string): string => {
  if (typeof usd === "string") return usd
  const text = String(usd)
  return text.includes("e") ? usd.toFixed(12) : text
}

/** USD with at most nine decimals: a number, or its text where that is more precise; as nano-USD. */
export const usdWhere = (holds: (amount: NanoUsd) => boolean) =>
  Schema.transformOrFail(
    Schema.Union(Schema.Number, Schema.String),
    Schema.BigIntFromSelf.pipe(Schema.fromBrand(NanoUsd)),
    {
      strict: true,
      decode: (usd, _, ast) => {
        const nano = enteredUsd(textOf(usd))
        return nano !== undefined && holds(nano)
          ? ParseResult.succeed(nano)
          : ParseResult.fail(new ParseResult.Type(ast, usd))
      },
      encode: (nano) => ParseResult.succeed(toUsd(nano))
    }
  ).annotations({ jsonSchema: { type: ["number", "string"] } })
