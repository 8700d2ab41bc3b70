import { HttpServerRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import { Auth } from "../../services/access/Auth.ts"
import * as Metrics from "../../services/telemetry/Metrics.ts"
import { Authenticated } from "../schema/Authenticated.ts"
import { presentedKey } from "./PresentedKey.ts"

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
