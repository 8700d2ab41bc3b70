import { Either, ParseResult, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { type Read, refuse, refuseAt, refused } from "../body/Fields.ts"

const problemId = Symbol.for("gateway/http/problem")

type Problem = (value: unknown) => string

/** Says what is wrong with a value that a schema refuses: "must be 1". */
export const problem = (text: string | Problem) => ({ [problemId]: typeof text === "string" ? () => text : text })

/** A schema that documents a field, and the function that reads it and says itself what is wrong. */
export const readWith = <A, I>(
  documented: Schema.Schema<unknown, I>,
  decoded: Schema.Schema<A>,
  read: (value: unknown) => Read<A>
) =>
  Schema.transformOrFail(documented, decoded, {
    strict: true,
    decode: (value, _, ast) => {
      const result = read(value)
      return refused(result) ? ParseResult.fail(new ParseResult.Type(ast, result)) : ParseResult.succeed(result)
    },
    encode: (value, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, value, "requests are only decoded"))
  })

const innerIssues = (issue: ParseResult.ParseIssue): ReadonlyArray<ParseResult.ParseIssue> => {
  if ("issues" in issue) return "_tag" in issue.issues ? [issue.issues] : issue.issues
  return "issue" in issue ? [issue.issue] : []
}

/** The innermost explanation: what encloses it only knows that something in it is wrong. */
const explain = (issue: ParseResult.ParseIssue): InvalidRequest | string | undefined => {
  if (refused(issue.actual)) return issue.actual
  if (issue._tag === "Missing") return "is required"
  for (const inner of innerIssues(issue)) {
    const explained = explain(inner)
    if (explained !== undefined) return explained
  }
  const told = "ast" in issue ? issue.ast.annotations[problemId] : undefined
  return typeof told === "function" ? String(told(issue.actual)) : undefined
}

const refusalOf = (issue: ParseResult.ParseIssue): InvalidRequest => {
  const [field] = innerIssues(issue)
  if (field?._tag !== "Pointer") return refuse(null, "The body must be a JSON object.")
  const explained = explain(field.issue) ?? "is not valid"
  const name = String(field.path)
  return refused(explained) ? explained : refuseAt(name, name, explained)
}

/** Decodes a body, already parsed; the first field that is wrong, in their order in the schema, is the one reported. */
export const decoder = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = ParseResult.decodeUnknownEither(schema)
  return (body: unknown): Either.Either<A, InvalidRequest> => Either.mapLeft(decode(body), refusalOf)
}
