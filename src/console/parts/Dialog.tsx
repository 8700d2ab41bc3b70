import { type ComponentChildren, createContext } from "preact"
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Method } from "../api/ApiClient.ts"
import { useWrite } from "../api/useResource.ts"
import { useHasRole } from "../SignedIn.ts"
import { ErrorBox, toast } from "./Feedback.tsx"

/** Copies the text, and selects it in case the browser denies the clipboard. */
export const Copy = ({ label, text }: { readonly label: string; readonly text: string }) => {
  const code = useRef<HTMLElement>(null)
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    if (code.current !== null) getSelection()?.selectAllChildren(code.current)
    if (!("clipboard" in navigator)) return
    await navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => undefined
    )
  }
  return (
    <div class="copy">
      <code ref={code}>{text}</code>
      <button type="button" aria-label={`Copy ${label}`} onClick={() => void copy()}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </div>
  )
}

/** A modal dialog. Escape closes it. */
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
  const isUnmounted = useRef(false)
  // This is a layout effect, because the next keystroke must not reach the page beneath.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => {
      isUnmounted.current = true
      // Closing returns the focus to the element that opened the dialog.
      element?.close()
    }
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={() => isUnmounted.current || onClose()}>
      <h2 id={id}>{title}</h2>
      {children}
      <button type="button" class="plain close" aria-label="Close" onClick={() => dialog.current?.close()}>
        ×
      </button>
    </dialog>
  )
}

/** Shows a new secret once. It is null if the request was repeated. */
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
      <p>This secret was already shown once and cannot be shown again.</p>
    ) : (
      <>
        <p>Copy it now. You cannot view it again.</p>
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

/** The field that the gateway rejected, and the reason. */
export const InvalidField = createContext<{ readonly param: string; readonly message: string } | undefined>(undefined)

/** Asks for confirmation of one change and sends it. `body` reads the fields among the children. */
export const WriteDialog = <A,>({
  action,
  body,
  children,
  dismiss = "Cancel",
  done,
  isDangerous = false,
  method = "POST",
  onClose,
  onDone,
  path,
  title
}: {
  readonly title: string
  /** The label of the button. */
  readonly action: string
  /** The label of the button that changes nothing. */
  readonly dismiss?: string
  readonly method?: Method
  readonly path: string
  readonly body?: (form: FormData) => unknown
  readonly isDangerous?: boolean
  /** The toast after success. */
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
  const invalid = error?.param ? { param: error.param, message: error.message } : undefined
  const hasInvalidField = invalid && form.current?.querySelector(`[aria-invalid][name="${CSS.escape(invalid.param)}"]`)
  return (
    <Dialog title={title} onClose={onClose}>
      <form ref={form} onSubmit={(event) => void submit(event)}>
        <InvalidField.Provider value={invalid}>{children}</InvalidField.Provider>
        {error && !hasInvalidField && <ErrorBox error={error} />}
        <div class="dialog-foot">
          <button type="button" onClick={onClose}>
            {dismiss}
          </button>
          <button class={isDangerous ? "primary danger" : "primary"} disabled={isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

type DialogOptions<A> = Omit<Parameters<typeof WriteDialog<A>>[0], "onClose" | "title" | "action"> &
  Partial<Pick<Parameters<typeof WriteDialog<A>>[0], "title" | "action">>

/** Opens the dialog of a change. Hidden if the role does not allow the change. */
export const WriteButton = <A,>({
  label,
  action = label,
  isPlain = false,
  target,
  role = "write",
  title = target === undefined ? label : `${label} ${target}?`,
  ...dialog
}: DialogOptions<A> & {
  readonly label: string
  /** The name of the record, for screen readers. */
  readonly target?: string
  readonly role?: "write" | "owner"
  /** Whether the button has the plain style of table rows. */
  readonly isPlain?: boolean
}) => {
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const wasOpen = useRef(false)
  useEffect(() => {
    if (wasOpen.current && !isOpen) button.current?.focus()
    wasOpen.current = isOpen
  }, [isOpen])
  if (!useHasRole(role)) return null
  return (
    <>
      <button
        ref={button}
        type="button"
        {...(isPlain && { class: "plain" })}
        {...(target !== undefined && { "aria-label": `${label} ${target}` })}
        onClick={() => setOpen(true)}
      >
        {label}
      </button>
      {isOpen && <WriteDialog<A> {...dialog} title={title} action={action} onClose={() => setOpen(false)} />}
    </>
  )
}
