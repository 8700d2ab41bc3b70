import { Either, ParseResult, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import { refuse, refuseAt } from "../body/Refusals.ts"

const problemId = Symbol.for("gateway/http/problem")

type Problem = (value: unknown) => string

/** Completes "`field` …", e.g. "must be 1". */
export const problem = (text: string | Problem) => ({ [problemId]: typeof text === "string" ? () => text : text })

/** A refusal of `read` travels as the issue's value. */
export const readWith = <A, I, R>(
  documented: Schema.Schema<A, I>,
  read: (value: A) => Either.Either<R, InvalidRequest>
) =>
  Schema.transformOrFail(
    documented,
    Schema.declare((_value): _value is R => true),
    {
      strict: true,
      decode: (value, _, ast) => Either.mapLeft(read(value), (refusal) => new ParseResult.Type(ast, refusal)),
      encode: (value, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, value, "requests are only decoded"))
    }
  )

const innerIssues = (issue: ParseResult.ParseIssue): ReadonlyArray<ParseResult.ParseIssue> => {
  if ("issues" in issue) return "_tag" in issue.issues ? [issue.issues] : issue.issues
  return "issue" in issue ? [issue.issue] : []
}

const annotationsOf = (issue: ParseResult.ParseIssue) => {
  if (issue._tag === "Missing") return { [problemId]: () => "is required", ...issue.ast.type.annotations }
  return "ast" in issue ? issue.ast.annotations : {}
}

/** The innermost explanation, since outer ones say no more. */
const explain = (issue: ParseResult.ParseIssue, param: string, path: string): InvalidRequest | undefined => {
  if (issue.actual instanceof InvalidRequest) return issue.actual
  const at = issue._tag === "Pointer" ? `${path}.${String(issue.path)}` : path
  for (const inner of innerIssues(issue)) {
    const explained = explain(inner, param, at)
    if (explained !== undefined) return explained
  }
  const describe = annotationsOf(issue)[problemId]
  return typeof describe === "function" ? refuseAt(param, path, String(describe(issue.actual))) : undefined
}

const refusalOf = (issue: ParseResult.ParseIssue): InvalidRequest => {
  const [field] = innerIssues(issue)
  if (field?._tag !== "Pointer") return refuse(null, "The body must be a JSON object.")
  const name = String(field.path)
  return explain(field.issue, name, name) ?? refuseAt(name, name, "is not valid")
}

/** Reports the first wrong field in the schema's order. */
export const decoder = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = ParseResult.decodeUnknownEither(schema)
  return (body: unknown): Either.Either<A, InvalidRequest> => Either.mapLeft(decode(body), refusalOf)
}

/**
 * Turns a reader by hand, which throws its refusal, into one that returns it. With an `Either` for each field, decoding
 * took 10 to 15 % longer.
 */
export const reading =
  <Args extends ReadonlyArray<unknown>, A>(read: (...args: Args) => A) =>
  (...args: Args): Either.Either<A, InvalidRequest> => {
    try {
      return Either.right(read(...args))
    } catch (error) {
      if (error instanceof InvalidRequest) return Either.left(error)
      throw error
    }
  }

/** Decodes by the schema, and then by hand, as `reading` has it; `json` is the body as it came. */
export const reader = <A, I, R, More extends ReadonlyArray<unknown>>(
  schema: Schema.Schema<A, I>,
  read: (body: A, json: JsonObject, ...more: More) => R
) => {
  const decode = decoder(schema)
  const readBody = reading(read)
  return (json: unknown, ...more: More): Either.Either<R, InvalidRequest> =>
    Either.flatMap(decode(json), (body) => readBody(body, isObject(json) ? json : {}, ...more))
}
