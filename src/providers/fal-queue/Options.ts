import { Record, Schema } from "effect"
import { makeOptions } from "../client/RouteOptions.ts"
import { commonOptions, makeJobOptions } from "../jobs/Options.ts"

export const optionNames: ReadonlySet<string> = new Set(Object.keys(commonOptions))

/** Some of a route's options say how a request is written, all others are fields of it. */
const Options = Schema.Struct(commonOptions, { key: Schema.String, value: Schema.Unknown })

export const options = makeOptions(Options, (given) => {
  const fixed = Record.filter(given, (_, name) => !optionNames.has(name))
  return makeJobOptions(given, { fixed, isList: (field) => field.endsWith("s") })
})
