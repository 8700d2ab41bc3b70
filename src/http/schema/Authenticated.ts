import { HttpApiMiddleware } from "@effect/platform"
import { Context } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import { InvalidApiKey, MissingApiKey } from "../../domain/Failure.ts"
import { onWire } from "./OnWire.ts"

export class CurrentCaller extends Context.Tag("gateway/http/CurrentCaller")<CurrentCaller, Caller>() {}

/** Not two security schemes: the last one's failure would win, and a missing key would look like a wrong one. */
export class Authenticated extends HttpApiMiddleware.Tag<Authenticated>()("gateway/http/Authenticated", {
  provides: CurrentCaller,
  failure: onWire(401, MissingApiKey, InvalidApiKey).annotations({ description: "The key is missing or not valid." })
}) {}
