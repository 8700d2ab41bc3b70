import { Context, type Effect } from "effect"

export class Readiness extends Context.Tag("gateway/http/Readiness")<
  Readiness,
  {
    /** A reason not to send traffic here, or undefined. */
    readonly unready: Effect.Effect<string | undefined>
    /** What does not work although the rest can be served, or undefined. */
    readonly impaired: () => string | undefined
  }
>() {}
