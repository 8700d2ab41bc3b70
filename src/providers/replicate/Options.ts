import { Schema } from "effect"
import { makeOptions, optional } from "../client/RouteOptions.ts"
import { commonOptions, InputFields, makeJobOptions } from "../jobs/Options.ts"

export const Options = Schema.Struct({
  ...commonOptions,
  image_list: optional(Schema.Boolean),
  input: optional(InputFields)
})

/** As with most of Replicate's models; `image_list` is for the others. */
const isUsuallyList = (field: string): boolean => field.endsWith("s") || field === "image_input"

export const options = makeOptions(Options, ({ image_list, input = {}, ...given }) =>
  makeJobOptions(given, { fixed: input, isList: (field) => image_list ?? isUsuallyList(field) })
)
