import { HttpServerRequest } from "@effect/platform"
import { Effect, Layer, Option, Redacted } from "effect"
import { Auth } from "../../services/access/Auth.ts"
import { Authenticated } from "../schema/Headers.ts"

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

export const AuthenticatedLayer = Layer.effect(
  Authenticated,
  Effect.map(Auth, (auth) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => auth.authenticate(presentedKey(headers)))
  )
)
