import { Effect } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"

const visible = /^[\x21-\x7e]{1,255}$/

/** The value of an `Idempotency-Key` header, if it is one that can be kept. */
export const keyFrom = (header: string): Effect.Effect<string, InvalidRequest> =>
  visible.test(header)
    ? Effect.succeed(header)
    : Effect.fail(
        new InvalidRequest({ message: "`Idempotency-Key` must be 1 to 255 visible ASCII characters.", param: null })
      )
