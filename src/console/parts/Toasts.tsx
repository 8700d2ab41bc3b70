import { makeStore, useStore } from "../Store.ts"

interface Toast {
  readonly id: number
  readonly text: string
}

const toasts = makeStore<ReadonlyArray<Toast>>([])
const shownMillis = 6000
let count = 0

const remove = (id: number) => toasts.set(toasts.get().filter((toast) => toast.id !== id))

/** Says that something was done. */
export const toast = (text: string): void => {
  const id = count++
  toasts.set([...toasts.get(), { id, text }])
  setTimeout(() => remove(id), shownMillis)
}

export const Toasts = () => (
  <div class="toasts" aria-live="polite" role="status">
    {useStore(toasts).map(({ id, text }) => (
      <div key={id} class="toast">
        {text}
        <button class="plain close" aria-label="Close" onClick={() => remove(id)}>
          ×
        </button>
      </div>
    ))}
  </div>
)
