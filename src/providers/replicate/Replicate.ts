import { Schema } from "effect"
import { jsonChunks } from "../../services/media/Chunks.ts"
import { makeOptions, optional, withDefault } from "../client/RouteOptions.ts"
import { type JobFormat, makeJobProvider } from "../jobs/JobAdapter.ts"
import { commonOptions, InputFields, type JobOptions } from "../jobs/Options.ts"
import { decodeFailure } from "./Failure.ts"
import { decodeHandle, decodeProgress } from "./Response.ts"

export const Options = Schema.Struct({
  ...commonOptions,
  image_list: optional(Schema.Boolean),
  input: withDefault(InputFields, {})
})

/** True of most models; `image_list` is for the others. */
const isUsuallyList = (field: string): boolean => field.endsWith("s") || field === "image_input"

export const options = makeOptions(Options, ({ image_list, input, ...given }): JobOptions => {
  return { ...given, fixed: input, isList: (field) => image_list ?? isUsuallyList(field) }
})

/** A picture whose response is lost must not run, and be paid for, much longer. */
const pictureHeaders = { prefer: "wait=30", "cancel-after": "5m" }
const clipHeaders = { prefer: "respond-async" }

export const format: JobFormat = {
  name: "Replicate",
  options,
  pictureField: "image_input",
  clipField: "image",
  authorization: (secret) => ({ authorization: `Bearer ${secret}` }),
  encode: ({ input, model }, mark, isAwaited) => {
    const headers = isAwaited ? pictureHeaders : clipHeaders
    // `owner/name`, or a community model's `owner/name:version`.
    const [name = "", version] = model.split(":")
    return version === undefined
      ? { path: `/v1/models/${name}/predictions`, headers, body: jsonChunks({ input }, mark) }
      : { path: "/v1/predictions", headers, body: jsonChunks({ version, input }, mark) }
  },
  decodeHandle,
  decodeProgress,
  decodeFailure,
  cancelMethod: "POST"
}

export const make = makeJobProvider("replicate", format)
