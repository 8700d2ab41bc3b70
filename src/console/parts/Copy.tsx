import { useRef, useState } from "preact/hooks"

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
