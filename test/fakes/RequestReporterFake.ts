import { Layer } from "effect"
import { RequestReporter } from "../../src/services/telemetry/RequestReporter.ts"

/** For servers whose reports nobody reads. */
export const layer = Layer.succeed(RequestReporter, { report: () => {} })
