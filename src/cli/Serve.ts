import { Command, Options } from "@effect/cli"
import { type Effect, Option } from "effect"
import { describeSettings } from "../settings/Variables.ts"
import * as Inputs from "./Inputs.ts"

/** What `gateway serve` runs; of its failure the message is told. */
export type Serve = (options: {
  readonly json: boolean
  /** In place of the setting `WORKERS`. */
  readonly workers: string | undefined
}) => Effect.Effect<void, { readonly message: string }>

/** Follows the help of `gateway serve`. */
export const settingsHelp = `SETTINGS, with their defaults\n\n${describeSettings()}`

const workers = Options.text("workers").pipe(
  Options.withPseudoName("N"),
  Options.withDescription("Processes that answer at the one address, or auto for one per core; instead of WORKERS."),
  Options.optional
)

export const serve = (start: Serve) =>
  Command.make("serve", { json: Inputs.json, workers }, ({ json, workers }) =>
    start({ json, workers: Option.getOrUndefined(workers) })
  ).pipe(Command.withDescription("Run the gateway."))
