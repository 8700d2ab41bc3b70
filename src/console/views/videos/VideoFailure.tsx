import { Internal } from "../../parts/Internal.tsx"
import { Long } from "../../parts/Long.tsx"
import { outcomeOf } from "../requests/Outcome.ts"
import type { VideoRecord } from "./VideoRecord.ts"

type Failed = Pick<VideoRecord, "error"> & Partial<Pick<VideoRecord, "attempts">>

/** Shows why a video failed and at which attempt, if it failed. */
export const VideoFailure = ({ video: { attempts, error } }: { readonly video: Failed }) => {
  if (error === null) return null
  const { attempt, code, message, outcome } = error
  const failed = attempt === null ? undefined : attempts?.[attempt - 1]
  return (
    <div class="error-box">
      {code}
      {message && `: ${message}`}
      {attempt !== null && (
        <p>
          Attempt {attempt}: {outcomeOf(outcome ?? "").text}
          {failed && (
            <Internal>
              {() => (
                <>
                  {" "}
                  at <code>{failed.route}</code> {failed.detail && <Long text={failed.detail} />}
                </>
              )}
            </Internal>
          )}
        </p>
      )}
    </div>
  )
}
