import type { ComponentChildren } from "preact"
import type { ApiError } from "../api/ApiError.ts"
import type { Resource } from "../api/useResource.ts"

export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>

export const Loading = () => (
  <p class="empty" role="status">
    Loading…
  </p>
)

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

/** Old data stays below the error of a refresh that failed. */
export const Loaded = <A,>({
  children,
  resource
}: {
  readonly resource: Resource<A>
  readonly children: (data: A) => ComponentChildren
}) => (
  <>
    {resource.error && <ErrorBox error={resource.error} retry={resource.refresh} />}
    {resource.data === undefined && resource.error === undefined && <Loading />}
    {resource.data !== undefined && children(resource.data)}
  </>
)
