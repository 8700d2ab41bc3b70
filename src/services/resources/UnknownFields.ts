import { SchemaAST as AST, ParseResult, type Schema } from "effect"
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
