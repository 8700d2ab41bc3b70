import { HttpServerRequest } from "@effect/platform"
import { Effect, Layer, Option, Redacted } from "effect"
import { Auth } from "../../services/access/Auth.ts"
import { Authenticated } from "../schema/Headers.ts"

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const bearer = /^bearer\s+(.*)$/i

export const presentedKey = (headers: Headers): Option.Option<Redacted.Redacted> => {
  const { authorization, "x-api-key": plain } = headers
  const token = typeof authorization === "string" ? bearer.exec(authorization)?.[1] : undefined
  const key = token ?? (typeof plain === "string" ? plain : undefined)
  return key === undefined ? Option.none() : Option.some(Redacted.make(key.trim()))
}

export const AuthenticatedLayer = Layer.effect(
  Authenticated,
  Effect.map(Auth, (auth) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => auth.authenticate(presentedKey(headers)))
  )
)
