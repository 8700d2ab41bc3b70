import { type ComponentChildren, createContext } from "preact"
import { useRef } from "preact/hooks"
import type { Method } from "../api/Client.ts"
import { useWrite } from "../api/useWrite.ts"
import { Dialog } from "./Dialog.tsx"
import { ErrorBox } from "./ErrorBox.tsx"
import { toast } from "./Toasts.tsx"

/** The field that the gateway refused, and why. */
export const RefusedField = createContext<{ readonly param: string; readonly message: string } | undefined>(undefined)

/** Asks before one request; with fields as children their values make its body. */
export const WriteDialog = <A,>({
  action,
  body,
  children,
  done,
  isDangerous = false,
  method = "POST",
  onClose,
  onDone,
  path,
  title
}: {
  readonly title: string
  /** What the button says. */
  readonly action: string
  readonly method?: Method
  readonly path: string
  readonly body?: (form: FormData) => unknown
  readonly isDangerous?: boolean
  /** The message once it is done. */
  readonly done?: string
  readonly children?: ComponentChildren
  readonly onDone: (answer: A) => void
  readonly onClose: () => void
}) => {
  const { error, isBusy, send } = useWrite<A>()
  const form = useRef<HTMLFormElement>(null)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const sent = await send(method, path, body?.(new FormData(event.currentTarget)))
    if (sent === undefined) return
    onClose()
    if (done !== undefined) toast(done)
    onDone(sent.answer)
  }
  const refused = error?.param ? { param: error.param, message: error.message } : undefined
  const isAtField = refused && form.current?.querySelector(`[aria-invalid][name="${CSS.escape(refused.param)}"]`)
  return (
    <Dialog title={title} onClose={onClose}>
      <form ref={form} onSubmit={(event) => void submit(event)}>
        <RefusedField.Provider value={refused}>{children}</RefusedField.Provider>
        {error && !isAtField && <ErrorBox error={error} />}
        <div class="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class={isDangerous ? "primary danger" : "primary"} disabled={isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
