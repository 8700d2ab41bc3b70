import { Effect } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { fromBase64 } from "../../services/media/Base64.ts"
import type { ProviderFailure } from "../../services/routing/Provider.ts"
import { protocolFailure } from "../client/Classification.ts"

/** A picture or clip, and where it is: an http(s) URL, or a `data:` URI. */
export interface Media {
  readonly url: string
  readonly revisedPrompt: string | undefined
}

export type End =
  | { readonly state: "done"; readonly media: Media }
  | { readonly state: "failed"; readonly failure: ProviderFailure }

/** A job's state. The effect fails where the call for it fails. */
export type Progress = { readonly state: "queued" | "in_progress"; readonly percent?: number | undefined } | End

/** "completed": the job is over, and its result says how. "unknown": the host uses a status that is not of its API. */
export type Reported =
  | Progress
  | { readonly state: "completed" }
  | { readonly state: "unknown"; readonly status: string }

/** Whether a status says that the job came to nothing, in whatever words of other hosts. */
export const isFailed = (status: string): boolean => /^(failed|failure|error|cancell?ed|aborted)$/i.test(status)

export const isInline = (url: string) => /^data:/i.test(url)

/** The bytes of a `data:` URI. */
export const decodeInline = (account: ProviderAccount, url: string) => {
  const comma = url.indexOf(",")
  const isBase64 = /;base64$/i.test(url.slice(0, Math.max(0, comma)))
  const bytes = isBase64 ? fromBase64(url.slice(comma + 1)) : undefined
  return bytes === undefined || bytes.length === 0
    ? protocolFailure(account, 200, "a data URI that is not base64")
    : Effect.succeed(bytes)
}
