import { Record, Schema } from "effect"
import { jsonChunks } from "../../services/media/Chunks.ts"
import { makeOptions } from "../client/RouteOptions.ts"
import { type JobFormat, makeJobProvider } from "../jobs/JobAdapter.ts"
import { commonOptions, type JobOptions } from "../jobs/Options.ts"
import { decodeFailure } from "./Failure.ts"
import { decodeHandle, decodeProgress, decodeResult, isCompleted } from "./Response.ts"

export const optionNames: ReadonlySet<string> = new Set(Object.keys(commonOptions))

/** Unknown options are fields of the request. */
const Options = Schema.Struct(commonOptions, { key: Schema.String, value: Schema.Unknown })

export const options = makeOptions(Options, (given): JobOptions => {
  const fixed = Record.filter(given, (_, name) => !optionNames.has(name))
  return { ...given, fixed, isList: (field) => field.endsWith("s") }
})

export const format: JobFormat = {
  name: "FalQueue",
  options,
  pictureField: "image_urls",
  clipField: "image_url",
  authorization: (secret) => ({ authorization: `Key ${secret}` }),
  encode: ({ input, model }, mark) => ({ path: `/${model}`, body: jsonChunks(input, mark) }),
  decodeHandle,
  decodeProgress,
  decodeResult,
  decodeFailure,
  cancelMethod: "PUT",
  isCompleted
}

export const make = makeJobProvider("fal-queue", format)
