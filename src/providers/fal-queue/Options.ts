import { Either, Schema } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import { common, type JobOptions, jobOptions, wrongOptions } from "../jobs/Options.ts"

/** The options that are no fields of the input. */
export const optionNames: ReadonlySet<string> = new Set(Object.keys(common))

const decode = Schema.decodeUnknownEither(Schema.Struct(common), { onExcessProperty: "error" })

/** The route's options: some say how a request is written, all others are fields of it. Left says what is wrong. */
export const optionsOf = ({ options }: RouteBase): Either.Either<JobOptions, string> => {
  const named = Object.entries(options).filter(([name]) => optionNames.has(name))
  const fixed = Object.fromEntries(Object.entries(options).filter(([name]) => !optionNames.has(name)))
  return Either.mapBoth(decode(Object.fromEntries(named)), {
    onLeft: wrongOptions,
    onRight: (given) => jobOptions(given, { fixed, isList: (field) => field.endsWith("s") })
  })
}
