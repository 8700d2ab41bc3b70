import { Either, Schema } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import { common, InputFields, type JobOptions, jobOptions, optional, wrongOptions } from "../jobs/Options.ts"

export const Options = Schema.Struct({
  ...common,
  image_list: optional(Schema.Boolean),
  input: optional(InputFields)
})

const decode = Schema.decodeUnknownEither(Options, { onExcessProperty: "error" })

/** What most of Replicate's models do; `image_list` is for the others. */
const isUsuallyList = (field: string): boolean => field.endsWith("s") || field === "image_input"

/** The route's options; left says what is wrong with them. */
export const optionsOf = ({ options }: RouteBase): Either.Either<JobOptions, string> =>
  Either.mapBoth(decode(options), {
    onLeft: wrongOptions,
    onRight: ({ image_list, input = {}, ...given }) =>
      jobOptions(given, { fixed: input, isList: (field) => image_list ?? isUsuallyList(field) })
  })
