import { readFileSync } from "node:fs"
import path from "node:path"
import { parseEnv } from "node:util"
import { Data, Effect, Either } from "effect"
import { decodeTextFile } from "../domain/TextDecoding.ts"
import { errorCode } from "../services/runtime/System.ts"
import { settingNames } from "./Variables.ts"

/** Its message is one line with the variable and its valid values, never the value itself. */
export class SettingsInvalid extends Data.TaggedError("SettingsInvalid")<{
  readonly variable: string
  readonly message: string
}> {}

/** Variables that are not empty. Contains secrets. */
export type Environment = Readonly<Record<string, string>>

/**
 * The process's variables win over those of `.env`. `NAME_FILE` names a file with a secret, as Docker and Kubernetes provide
 * them; relative paths start at the directory.
 */
export const readEnvironment = (
  directory: string = process.cwd(),
  own: Readonly<Record<string, string | undefined>> = process.env
): Effect.Effect<Environment, SettingsInvalid> =>
  Effect.gen(function* () {
    const fromEnvFile = yield* readFile(path.join(directory, ".env"))
    const given = Object.entries({ ...fromEnvFile, ...own }).flatMap(
      ([name, value]): Array<[string, string]> => (value === undefined || value.trim() === "" ? [] : [[name, value]])
    )
    const environment = yield* refuseGarbled(Object.fromEntries(given))
    return yield* readSecretFiles(environment, directory)
  })

// Excludes a token of AWS that the gateway does not use and may be unable to read.
const secretFileVariable = /^(?!AWS_WEB_IDENTITY_)(\w+_(?:KEY|TOKEN|SECRET)|DATABASE_URL|AWS_ACCESS_KEY_ID)_FILE$/

const readSecret = Effect.fnUntraced(function* (variable: string, file: string) {
  const refuse = (reason: string) => new SettingsInvalid({ variable, message: `${variable} ${reason}.` })
  const bytes = yield* Effect.try({
    try: () => readFileSync(file),
    catch: () => refuse("names a file that cannot be read")
  })
  const text = yield* Either.mapLeft(decodeTextFile(bytes), (reason) => refuse(`cannot be read: ${reason}`))
  return text.trim() === "" ? yield* refuse("names an empty file") : text.trim()
})

/**
 * Fails only for settings, because another program may own any other variable. Such a secret is left out: the catalog
 * refuses it if it is the credential of a provider.
 */
const readSecretFiles = (environment: Environment, directory: string) =>
  Effect.gen(function* () {
    const secrets: Record<string, string> = { ...environment }
    for (const [variable, file] of Object.entries(environment)) {
      const [, name] = secretFileVariable.exec(variable) ?? []
      if (name === undefined) continue
      const message = `${variable} cannot be set together with ${name}.`
      const secret = yield* Effect.either(
        environment[name] !== undefined
          ? new SettingsInvalid({ variable, message })
          : readSecret(variable, path.resolve(directory, file.trim()))
      )
      if (Either.isRight(secret)) secrets[name] = secret.right
      else if (settingNames.includes(name)) return yield* secret.left
      else delete secrets[name]
    }
    return secrets
  })

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
const parseEnvFile = (bytes: Uint8Array): Either.Either<NodeJS.Dict<string>, string> =>
  Either.gen(function* () {
    const text = (yield* decodeTextFile(bytes)).replace(/\r\n?/g, "\n")
    const variables = parseEnv(yield* keepAssignments(text))
    const [garbled] = findGarbled(variables) ?? []
    return garbled === undefined
      ? variables
      : yield* Either.left(`the value of ${garbled} is not valid UTF-8: save the file as UTF-8`)
  })

const isMissing = (error: unknown) => errorCode(error) === "ENOENT"

const readFile = (file: string) =>
  Effect.try({ try: () => readFileSync(file), catch: (error) => error }).pipe(
    Effect.catchIf(isMissing, () => Effect.succeed(new Uint8Array(0))),
    Effect.mapError(() => new SettingsInvalid({ variable: ".env", message: `${file} cannot be read.` })),
    Effect.flatMap((bytes) =>
      Either.mapLeft(parseEnvFile(bytes), (reason) => {
        return new SettingsInvalid({ variable: ".env", message: `${file} cannot be read: ${reason}.` })
      })
    )
  )

/** Fails for the name of a setting with invisible characters, such as a byte order mark. */
const refuseGarbled = (environment: Environment) => {
  const garbled = Object.keys(environment).find((name) => {
    const visible = name.replace(/[^!-~]/g, "")
    return visible !== name && settingNames.includes(visible)
  })
  if (garbled === undefined) return Effect.succeed(environment)
  const variable = garbled.replace(/[^!-~]/g, "")
  const message = `The name of the variable ${variable} has invisible characters: set it again.`
  return new SettingsInvalid({ variable, message })
}
