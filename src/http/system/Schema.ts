import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { NoSuchPath } from "../errors/Schemas.ts"

/** What machines ask of a gateway. */
export const System = HttpApiGroup.make("system")
  .add(HttpApiEndpoint.get("health", "/healthz"))
  .add(HttpApiEndpoint.get("readiness", "/readyz"))
  .add(HttpApiEndpoint.get("metrics", "/metrics"))
  .addError(NoSuchPath)
