import { type ComponentChildren, createContext } from "preact"
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Method } from "../api/Client.ts"
import { useWrite } from "../api/useWrite.ts"
import { useRole } from "../Session.ts"
import { ErrorBox, toast } from "./Feedback.tsx"

/** Text to copy; where the browser has no clipboard for the page, it is selected. */
export const Copy = ({ label, text }: { readonly label: string; readonly text: string }) => {
  const shown = useRef<HTMLElement>(null)
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    if (shown.current !== null) getSelection()?.selectAllChildren(shown.current)
    if (!("clipboard" in navigator)) return
    await navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => undefined
    )
  }
  return (
    <div class="copy">
      <code ref={shown}>{text}</code>
      <button type="button" aria-label={`Copy ${label}`} onClick={() => void copy()}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </div>
  )
}

/** Modal; Escape closes it. */
export const Dialog = ({
  children,
  onClose,
  title
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isGone = useRef(false)
  // Before the next key goes to what is beneath.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => {
      isGone.current = true
      // Gives the focus back to what opened it.
      element?.close()
    }
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={() => isGone.current || onClose()}>
      <h2 id={id}>{title}</h2>
      {children}
      <button type="button" class="plain close" aria-label="Close" onClick={() => dialog.current?.close()}>
        ×
      </button>
    </dialog>
  )
}

/** Null: the request was repeated, and its secret cannot be shown again. */
export const SecretDialog = ({
  children,
  label,
  onClose,
  secret,
  title
}: {
  readonly title: string
  readonly label: string
  readonly secret: string | null
  readonly children?: ComponentChildren
  readonly onClose: () => void
}) => (
  <Dialog title={title} onClose={onClose}>
    {secret === null ? (
      <p>It was shown once already, and cannot be shown again.</p>
    ) : (
      <>
        <p>Copy it now: it is not shown again.</p>
        <Copy label={label} text={secret} />
      </>
    )}
    {children}
    <div class="dialog-foot">
      <button type="button" class="primary" onClick={onClose}>
        Done
      </button>
    </div>
  </Dialog>
)

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

type Asked<A> = Omit<Parameters<typeof WriteDialog<A>>[0], "onClose" | "title" | "action"> &
  Partial<Pick<Parameters<typeof WriteDialog<A>>[0], "title" | "action">>

/** Opens the dialog of a change; nothing is shown to those whose role does not allow it. */
export const WriteButton = <A,>({
  label,
  action = label,
  isPlain = false,
  of,
  role = "write",
  title = of === undefined ? label : `${label} ${of}?`,
  ...dialog
}: Asked<A> & {
  readonly label: string
  /** What it changes, for those who do not see the row. */
  readonly of?: string
  readonly role?: "write" | "owner"
  /** Among the values of a row. */
  readonly isPlain?: boolean
}) => {
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const wasOpen = useRef(false)
  useEffect(() => {
    if (wasOpen.current && !isOpen) button.current?.focus()
    wasOpen.current = isOpen
  }, [isOpen])
  if (!useRole(role)) return null
  return (
    <>
      <button
        ref={button}
        type="button"
        {...(isPlain && { class: "plain" })}
        {...(of !== undefined && { "aria-label": `${label} ${of}` })}
        onClick={() => setOpen(true)}
      >
        {label}
      </button>
      {isOpen && <WriteDialog<A> {...dialog} title={title} action={action} onClose={() => setOpen(false)} />}
    </>
  )
}
