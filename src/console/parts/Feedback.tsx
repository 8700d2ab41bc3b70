import type { ComponentChildren } from "preact"
import type { ApiError } from "../api/ApiError.ts"
import type { Resource } from "../api/useResource.ts"
import { onSignedOut } from "../SignedIn.ts"
import { makeStore, useStore } from "../Store.ts"

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

/** Shows the data of a resource. If a refresh fails, shows the error above the previous data. */
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

interface Toast {
  readonly id: number
  readonly text: string
  readonly isWarning?: boolean
}

const toasts = makeStore<ReadonlyArray<Toast>>([])
onSignedOut(() => toasts.set([]))
const toastMillis = 6000
let count = 0

const removeToast = (id: number) => toasts.set(toasts.get().filter((toast) => toast.id !== id))

export const toast = (text: string): void => {
  const id = count++
  toasts.set([...toasts.get(), { id, text }])
  setTimeout(() => removeToast(id), toastMillis)
}

/** Shows warnings of a change that was made. They stay until the user closes them. */
export const toastWarnings = (warnings: ReadonlyArray<string> = []): void =>
  toasts.set([...toasts.get(), ...warnings.map((text) => ({ id: count++, text, isWarning: true }))])

export const Toasts = () => (
  <div class="toasts" aria-live="polite" role="status">
    {useStore(toasts).map(({ id, isWarning, text }) => (
      <div key={id} class={isWarning ? "toast warn" : "toast"}>
        {text}
        <button class="plain close" aria-label="Close" onClick={() => removeToast(id)}>
          ×
        </button>
      </div>
    ))}
  </div>
)
