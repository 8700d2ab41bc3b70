/** `layer` runs a gateway in the test process whose customers pay with a fake Stripe. */

import { Context, Effect, Layer } from "effect"
import * as Served from "../gateway/ServedGateway.ts"
import type { ShortTimings } from "../gateway/ShortTimings.ts"
import * as FakeStripe from "./FakeStripe.ts"

export class Stripe extends Context.Tag("test/Stripe")<Stripe, FakeStripe.FakeStripe>() {}

export const layer = (env: Readonly<Record<string, string>> = {}, timings?: ShortTimings) =>
  Layer.unwrapScoped(
    Effect.map(FakeStripe.make, (stripe) =>
      Layer.merge(
        Layer.succeed(Stripe, stripe),
        Served.layer(
          Effect.succeed({ env: { ...FakeStripe.environmentFor(stripe), SANDBOX: "true", ...env }, timings })
        )
      )
    )
  )
