import { Command } from "@effect/cli"
import type { Effect } from "effect"
import { describeSettings } from "../settings/Variables.ts"
import * as Inputs from "./Inputs.ts"

/** What `gateway serve` runs; of its failure the message is told. */
export type Serve = (options: { readonly json: boolean }) => Effect.Effect<void, { readonly message: string }>

/** Follows the help of `gateway serve`. */
export const settingsHelp = `SETTINGS, with their defaults\n\n${describeSettings()}`

export const serve = (start: Serve) =>
  Command.make("serve", { json: Inputs.json }, ({ json }) => start({ json })).pipe(
    Command.withDescription("Run the gateway.")
  )
