import { HttpApiMiddleware } from "@effect/platform"
import { Context } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import { InvalidApiKey, MissingApiKey } from "../../domain/Failure.ts"
import { onWire } from "./OnWire.ts"

/** Who makes the request, known once its key has been checked. */
export class CurrentCaller extends Context.Tag("gateway/http/CurrentCaller")<CurrentCaller, Caller>() {}

/**
 * Reads the key from either header. One plain middleware, not two security schemes: of those the last one's
 * failure would win, and a missing key could not be told from a wrong one.
 */
export class Authenticated extends HttpApiMiddleware.Tag<Authenticated>()("gateway/http/Authenticated", {
  provides: CurrentCaller,
  failure: onWire(401, MissingApiKey, InvalidApiKey).annotations({ description: "The key is missing or not valid." })
}) {}
