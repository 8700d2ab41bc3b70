import { readFileSync } from "node:fs"
import path from "node:path"
import { parseEnv } from "node:util"
import { Data, Effect, Either } from "effect"
import { decodeTextFile } from "../domain/TextDecoding.ts"
import { errorCode } from "../services/runtime/System.ts"
import { settingNames } from "./Variables.ts"

/** The message is one line. It names the variable and the valid values, and never contains the value, which may be a secret. */
export class SettingsInvalid extends Data.TaggedError("SettingsInvalid")<{
  readonly variable: string
  readonly message: string
}> {}

/** Values by variable, without empty ones. Contains secrets. */
export type Environment = Readonly<Record<string, string>>

/**
 * The variables of the process override those of `.env` in `directory`. A variable such as `NAME_FILE`, as Docker and
 * Kubernetes use it, is the path of a file with the value of `NAME`. A relative path starts at `directory`.
 */
export const readEnvironment = (
  directory: string = process.cwd(),
  own: Readonly<Record<string, string | undefined>> = process.env
): Effect.Effect<Environment, SettingsInvalid> =>
  Effect.gen(function* () {
    const fromEnvFile = yield* readFile(path.join(directory, ".env"))
    const filled = Object.entries({ ...fromEnvFile, ...own }).flatMap(
      ([name, value]): Array<[string, string]> => (value === undefined || value.trim() === "" ? [] : [[name, value]])
    )
    const environment = yield* refuseGarbled(Object.fromEntries(filled))
    return yield* readSecretFiles(environment, directory)
  })

// Excludes AWS_WEB_IDENTITY_TOKEN_FILE, which the gateway does not use and may not be permitted to read.
const secretFileVariable = /^(?!AWS_WEB_IDENTITY_)(\w+_(?:KEY|TOKEN|SECRET)|DATABASE_URL|AWS_ACCESS_KEY_ID)_FILE$/

const readSecret = Effect.fnUntraced(function* (variable: string, file: string) {
  const refuse = (reason: string) => new SettingsInvalid({ variable, message: `${variable} ${reason}.` })
  const bytes = yield* Effect.try({
    try: () => readFileSync(file),
    catch: () => refuse("names an unreadable file")
  })
  const text = yield* Either.mapLeft(decodeTextFile(bytes), (reason) => refuse(`cannot be read: ${reason}`))
  return text.trim() === "" ? yield* refuse("names an empty file") : text.trim()
})

/**
 * Fails only if the secret of a setting cannot be read. Another variable may belong to another program, so its unreadable
 * secret is omitted. If the catalog needs it as a credential, the catalog's check fails instead.
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
/** A line with only a name. In the env files of containers, it passes on the host's variable. */
const nameAlone = /^[ \t]*(?:export[ \t]+)?\w+[ \t]*$/
const quote = /^["'`]/

const secretName = /^\w+_(?:KEY|TOKEN|SECRET)(?:_FILE)?$/

/** Finds the assignment of a setting or secret within a quoted value. If there is one, the closing quote is missing. */
const findQuotedAssignment = (lines: ReadonlyArray<string>): string | undefined =>
  lines
    .map((line) => assignment.exec(line)?.[1] ?? "")
    .find((name) => settingNames.includes(name) || secretName.test(name))

/** Blanks lines that `parseEnv` may ignore. Fails with a reason at the first other line that it would ignore silently. */
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
    const end = lines.findIndex((later, laterIndex) => laterIndex > index && later.includes(opening))
    if (end < 0) continue
    const quotedName = findQuotedAssignment(lines.slice(index + 1, end + 1))
    if (quotedName !== undefined) {
      return Either.left(`the quote that opens in line ${index + 1} is not closed before ${quotedName}`)
    }
    index = end
  }
  return Either.right(lines.join("\n"))
}

const findGarbled = (variables: Readonly<Record<string, string | undefined>>) =>
  Object.entries(variables).find(([, value]) => value?.includes("\ufffd"))

/**
 * Returns the variables of a file such as `.env`. Fails if a line would be ignored, because a gateway that misses its
 * DATABASE_URL would start with another database. The reason contains names but no values, which may be secrets.
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

/** Fails if the name of a setting contains invisible characters, such as a byte order mark. */
const refuseGarbled = (environment: Environment) => {
  const garbled = Object.keys(environment).find((name) => {
    const visible = name.replace(/[^!-~]/g, "")
    return visible !== name && settingNames.includes(visible)
  })
  if (garbled === undefined) return Effect.succeed(environment)
  const variable = garbled.replace(/[^!-~]/g, "")
  const message = `The name of the variable ${variable} contains invisible characters. Type the name again.`
  return new SettingsInvalid({ variable, message })
}
