import type { ProviderFailure } from "../../services/routing/Provider.ts"

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
