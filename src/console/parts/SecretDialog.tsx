import type { ComponentChildren } from "preact"
import { Copy } from "./Copy.tsx"
import { Dialog } from "./Dialog.tsx"

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
