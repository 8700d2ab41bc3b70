import type { ApiError } from "../api/ApiError.ts"

export const ErrorBox = ({ error, retry }: { readonly error: ApiError; readonly retry?: () => void }) => (
  <div class="error-box" role="alert">
    <p>
      {error.message}
      {error.retryAfterSeconds !== undefined && ` Try again in ${error.retryAfterSeconds} s.`}
    </p>
    {retry && (
      <button class="plain" onClick={retry}>
        Try again
      </button>
    )}
  </div>
)
