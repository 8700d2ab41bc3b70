import { useEffect, useRef, useState } from "preact/hooks"
import { useRole } from "../Session.ts"
import { WriteDialog } from "./Dialog.tsx"

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
