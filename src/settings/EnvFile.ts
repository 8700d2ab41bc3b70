import { parseEnv } from "node:util"
import { Either } from "effect"
import { decodeTextFile } from "../domain/TextDecoding.ts"

const assignment = /^[ \t]*(?:export[ \t]+)?[!-~]+?[ \t]*=[ \t]*(.*)$/
const blank = /^[ \t]*(?:#|$)/
/** In env files of containers, a name alone means the host's variable. */
const nameAlone = /^[ \t]*(?:export[ \t]+)?\w+[ \t]*$/
const quote = /^["'`]/

/** Keeps only assignments, because `parseEnv` reads nothing else. Fails with the number (from 1) of the first other line. */
const keepAssignments = (text: string): Either.Either<string, number> => {
  const lines = text.split("\n")
  let closing: string | undefined
  for (const [index, line] of lines.entries()) {
    if (closing !== undefined) {
      if (line.includes(closing)) closing = undefined
      continue
    }
    if (blank.test(line)) continue
    if (nameAlone.test(line)) {
      lines[index] = ""
      continue
    }
    const [, value] = assignment.exec(line) ?? []
    if (value === undefined) return Either.left(index + 1)
    const [opening] = quote.exec(value) ?? []
    if (opening === undefined || value.includes(opening, 1)) continue
    if (lines.slice(index + 1).some((later) => later.includes(opening))) closing = opening
  }
  return Either.right(lines.join("\n"))
}

const findGarbled = (variables: Readonly<Record<string, string | undefined>>) =>
  Object.entries(variables).find(([, value]) => value?.includes("\ufffd"))

/**
 * Returns the variables of a file such as `.env`. Fails with a reason if a line would be lost: a gateway without its
 * DATABASE_URL starts with another database. The reason contains names but no values, which may be secrets.
 */
export const readEnvFile = (bytes: Uint8Array): Either.Either<NodeJS.Dict<string>, string> =>
  Either.gen(function* () {
    const text = (yield* decodeTextFile(bytes)).replace(/\r\n?/g, "\n")
    const assignments = yield* Either.mapLeft(
      keepAssignments(text),
      (line) => `line ${line} is not an assignment such as NAME=value`
    )
    const variables = parseEnv(assignments)
    const [garbled] = findGarbled(variables) ?? []
    return garbled === undefined
      ? variables
      : yield* Either.left(`the value of ${garbled} is not valid UTF-8: save the file as UTF-8`)
  })
