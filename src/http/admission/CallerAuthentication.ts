import { Effect, Layer, Option, Redacted } from "effect"
import { MissingApiKey } from "../../domain/Failure.ts"
import { Authenticated, CurrentCaller } from "../schema/Headers.ts"

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const bearer = /^bearer\s+(.*)$/i

export const presentedSecret = (headers: Headers): string | undefined => {
  const { authorization, "x-api-key": plain } = headers
  const token = typeof authorization === "string" ? bearer.exec(authorization)?.[1] : undefined
  return (token ?? (typeof plain === "string" ? plain : undefined))?.trim()
}

export const presentedKey = (headers: Headers): Option.Option<Redacted.Redacted> => {
  const secret = presentedSecret(headers)
  return secret === undefined ? Option.none() : Option.some(Redacted.make(secret))
}

/** The pipeline has checked the key of every endpoint that has this middleware. */
export const AuthenticatedLayer = Layer.succeed(
  Authenticated,
  Effect.flatMap(Effect.serviceOption(CurrentCaller), (caller) =>
    Option.isSome(caller) ? Effect.succeed(caller.value) : new MissingApiKey()
  )
)
