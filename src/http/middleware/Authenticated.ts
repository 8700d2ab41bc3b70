import { HttpServerRequest } from "@effect/platform"
import { Effect, Layer, Option, Redacted } from "effect"
import { Auth } from "../../services/Auth.ts"
import * as Metrics from "../../services/Metrics.ts"
import { Authenticated } from "../contract/Authenticated.ts"

/** The key as sent: a bearer token, or the x-api-key header. */
const presentedKey = (headers: Readonly<Record<string, string | undefined>>): Option.Option<Redacted.Redacted> => {
  const bearer = /^bearer\s+(.*)$/i.exec(headers.authorization ?? "")?.[1]
  return Option.fromNullable(bearer ?? headers["x-api-key"]).pipe(Option.map((key) => Redacted.make(key.trim())))
}

export const AuthenticatedLayer = Layer.effect(
  Authenticated,
  Effect.map(Auth, (auth) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
      Effect.tapError(auth.authenticate(presentedKey(headers)), () =>
        Metrics.count(Metrics.refused, { reason: "invalid_api_key" })
      )
    )
  )
)
