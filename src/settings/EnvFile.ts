import { parseEnv } from "node:util"
import { Either } from "effect"
import { decodeTextFile } from "../domain/TextDecoding.ts"
import { settingNames } from "./Variables.ts"

const assignment = /^[ \t]*(?:export[ \t]+)?([!-~]+?)[ \t]*=[ \t]*(.*)$/
const blank = /^[ \t]*(?:#|$)/
/** In env files of containers, a name alone means the host's variable. */
const nameAlone = /^[ \t]*(?:export[ \t]+)?\w+[ \t]*$/
const quote = /^["'`]/

const secretName = /^\w+_(?:KEY|TOKEN|SECRET)(?:_FILE)?$/

/** Finds a setting or secret in the lines of a value in quotes: they were not meant to belong to the value. */
const findContained = (lines: ReadonlyArray<string>): string | undefined =>
  lines
    .map((line) => assignment.exec(line)?.[1] ?? "")
    .find((name) => settingNames.includes(name) || secretName.test(name))

/** Keeps only assignments, because `parseEnv` reads nothing else. Fails with the reason at the first line that would be lost. */
const keepAssignments = (text: string): Either.Either<string, string> => {
  const lines = text.split("\n")
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? ""
    if (blank.test(line)) continue
    if (nameAlone.test(line)) {
      lines[index] = ""
      continue
    }
    const [, , value] = assignment.exec(line) ?? []
    if (value === undefined) return Either.left(`line ${index + 1} is not an assignment such as NAME=value`)
    const [opening] = quote.exec(value) ?? []
    if (opening === undefined || value.includes(opening, 1)) continue
    const end = lines.findIndex((later, place) => place > index && later.includes(opening))
    if (end < 0) continue
    const contained = findContained(lines.slice(index + 1, end + 1))
    if (contained !== undefined) {
      return Either.left(`the quote that opens in line ${index + 1} is not closed before ${contained}`)
    }
    index = end
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
    const variables = parseEnv(yield* keepAssignments(text))
    const [garbled] = findGarbled(variables) ?? []
    return garbled === undefined
      ? variables
      : yield* Either.left(`the value of ${garbled} is not valid UTF-8: save the file as UTF-8`)
  })
