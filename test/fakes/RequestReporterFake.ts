import { Layer } from "effect"
import { RequestReporter } from "../../src/services/telemetry/RequestLines.ts"

/** A reporter that discards its reports. */
export const layer = Layer.succeed(RequestReporter, { report: () => {} })
